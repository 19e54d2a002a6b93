#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/graph.h"

namespace paceline::cuda {

namespace {

bool is_forward(FusedKind kind) {
  return kind == FusedKind::forward_sums;
}

// The roles of a request's tensors, in the order of Operands.
struct Role {
  void* FusedOperands::*address;
  enum { kX, kW, kY, kMask, kOfX, kOfY } size;
  bool written = false;
};

std::vector<Role> list_roles(const FusedRequest& request) {
  using Fused = FusedOperands;
  const bool forward = is_forward(request.kind);
  std::vector<Role> roles{
      {&Fused::x, Role::kX, !forward}, {&Fused::w, Role::kW}, {&Fused::y, Role::kY, forward}};
  if (request.kind == FusedKind::backward_relu_sums) {
    roles.push_back({&Fused::scale, Role::kOfX});
    roles.push_back({&Fused::shift, Role::kOfX});
  }
  if (!forward) roles.push_back({&Fused::z, Role::kX});
  if (request.kind == FusedKind::backward_mask_sums) roles.push_back({&Fused::mask, Role::kMask});
  if (request.adds_branch) roles.push_back({&Fused::branch, Role::kX});
  const auto sums = forward ? Role::kOfY : Role::kOfX;
  roles.push_back({&Fused::sum, sums, true});
  roles.push_back({&Fused::sum_of_products, sums, true});
  return roles;
}

class FusedGraph {
 public:
  FusedGraph(std::shared_ptr<Session> session, const FusedRequest& request)
      : request_(request),
        shape_(request.shape),
        stored_(cudnn_type(stored_as(shape_.math))),
        builder_(std::move(session)) {}

  std::shared_ptr<const OperationGraph> build() {
    const std::vector<Role> roles = list_roles(request_);
    for (const Role& role : roles) {
      const bool of_channels = role.size == Role::kOfX || role.size == Role::kOfY;
      at_.push_back({role.address, builder_.tensor(role.size == Role::kMask ? CUDNN_DATA_BOOLEAN
                                                   : of_channels            ? CUDNN_DATA_FLOAT
                                                                            : stored_,
                                                   size_of(role.size))});
    }
    is_forward(request_.kind) ? forward() : backward();
    return builder_.finish();
  }

 private:
  using Tensor = GraphBuilder::Tensor;

  GraphBuilder::Size size_of(decltype(Role::size) role) const {
    switch (role) {
      case Role::kW:
        return {shape_.out, shape_.in, shape_.kernel, shape_.kernel};
      case Role::kY:
        return {shape_.batch, shape_.out, shape_.out_height(), shape_.out_width()};
      case Role::kOfX:
        return {1, shape_.in, 1, 1};
      case Role::kOfY:
        return {1, shape_.out, 1, 1};
      default:
        return {shape_.batch, shape_.in, shape_.height, shape_.width};
    }
  }

  Tensor at(void* FusedOperands::*address) const {
    for (const auto& [role, tensor] : at_) {
      if (role == address) return tensor;
    }
    throw Error(ErrorKind::internal, "a fused convolution lacks a tensor", to_text(request_));
  }

  Tensor between() { return builder_.between(CUDNN_DATA_FLOAT, size_of(Role::kX)); }

  void forward() {
    const Tensor y = at(&FusedOperands::y);
    builder_.convolution(ConvPass::forward, shape_, at(&FusedOperands::x), at(&FusedOperands::w),
                         y);
    builder_.channel_statistics(y, at(&FusedOperands::sum), at(&FusedOperands::sum_of_products));
  }

  void backward() {
    const Tensor x = at(&FusedOperands::x), z = at(&FusedOperands::z);
    Tensor gradient = between();
    builder_.convolution(ConvPass::backward_data, shape_, gradient, at(&FusedOperands::w),
                         at(&FusedOperands::y));
    if (request_.adds_branch) {
      const Tensor sum = between();
      builder_.pointwise(CUDNN_POINTWISE_ADD, gradient, at(&FusedOperands::branch), sum);
      gradient = sum;
    }
    if (request_.kind == FusedKind::backward_mask_sums) {
      builder_.pointwise(CUDNN_POINTWISE_MUL, gradient, at(&FusedOperands::mask), x);
    } else {
      const Tensor scaled = between(), shifted = between();
      builder_.pointwise(CUDNN_POINTWISE_MUL, z, at(&FusedOperands::scale), scaled);
      builder_.pointwise(CUDNN_POINTWISE_ADD, scaled, at(&FusedOperands::shift), shifted);
      builder_.relu_gradient(gradient, shifted, x);
    }
    const Tensor product = between();
    builder_.channel_sums(x, at(&FusedOperands::sum));
    builder_.pointwise(CUDNN_POINTWISE_MUL, x, z, product);
    builder_.channel_sums(product, at(&FusedOperands::sum_of_products));
  }

  FusedRequest request_;
  ConvShape shape_;
  cudnnDataType_t stored_;
  GraphBuilder builder_;
  std::vector<std::pair<void * FusedOperands::*, Tensor>> at_;
};

std::shared_ptr<const OperationGraph> make_graph(const std::shared_ptr<Session>& session,
                                                 const FusedRequest& request) {
  return FusedGraph(session, request).build();
}

}  // namespace

std::string to_text(const FusedRequest& request) {
  const char* kind = request.kind == FusedKind::forward_sums         ? "and sums"
                     : request.kind == FusedKind::backward_relu_sums ? "relu, and sums"
                                                                     : "mask, and sums";
  const ConvPass pass = is_forward(request.kind) ? ConvPass::forward : ConvPass::backward_data;
  return fmt::format("{} {}{}", to_text(ConvRequest{request.shape, pass}), kind,
                     request.adds_branch ? ", of two branches" : "");
}

Operands make_operands(const FusedRequest& request, const FusedOperands& operands) {
  Operands placed;
  std::size_t next = 0;
  for (const Role& role : list_roles(request)) placed.tensors[next++] = operands.*role.address;
  placed.workspace = operands.workspace;
  return placed;
}

FusedOperands make_operands(const FusedRequest& request, const Operands& operands) {
  FusedOperands named;
  std::size_t next = 0;
  for (const Role& role : list_roles(request)) named.*role.address = operands.tensors[next++];
  named.workspace = operands.workspace;
  return named;
}

std::vector<TensorSize> list_sizes(const FusedRequest& request) {
  const ConvShape& shape = request.shape;
  const auto count = [](auto... sides) { return (std::size_t{1} * ... * std::size_t(sides)); };
  const DType type = stored_as(shape.math);
  const std::size_t x = count(shape.batch, shape.height, shape.width, shape.in);
  // By Role::size.
  const std::array<TensorSize, 6> all{
      {{x, type},
       {count(shape.out, shape.kernel, shape.kernel, shape.in), type},
       {count(shape.batch, shape.out_height(), shape.out_width(), shape.out), type},
       {(x + 7) / 8, DType::u8},
       {count(shape.in), DType::f32},
       {count(shape.out), DType::f32}}};
  std::vector<TensorSize> sizes;
  for (const Role& role : list_roles(request)) {
    sizes.push_back(all.at(role.size));
    if (role.written) sizes.back().use = TensorSize::Use::written;
  }
  return sizes;
}

Offered fused_offer(const std::shared_ptr<Session>& session, const FusedRequest& request,
                    const EngineRules& rules) {
  Offered found = offered_engines(make_graph(session, request), rules);
  // Seen with 9.19: eight kernels are offered for these, and the compiler refuses all of them.
  if (!is_forward(request.kind) && request.shape.stride > 1) {
    found.candidates.clear();
    found.refused = "cuDNN cannot compile gradients of strided convolutions with sums";
  }
  return found;
}

std::shared_ptr<Implementation> build_fused(const std::shared_ptr<Session>& session,
                                            const FusedRequest& request, const EngineRules& rules,
                                            const Recipe& recipe) {
  return build_engine(make_graph(session, request), rules, recipe);
}

}  // namespace paceline::cuda
