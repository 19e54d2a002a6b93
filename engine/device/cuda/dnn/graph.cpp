#include "engine/device/cuda/dnn/graph.h"

#include <utility>

namespace paceline::cuda {

namespace {

constexpr std::size_t kFirstBetween = 1000;  // ids of tensors that are not in memory
constexpr auto kX = CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kB = CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
               kY = CUDNN_ATTR_OPERATION_POINTWISE_YDESC;

// The attributes of a pass, whose names differ and whose meaning does not.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};

const PassNames& point_names(ConvPass pass) {
  static constexpr PassNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr PassNames kData{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  static constexpr PassNames kWeights{
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  return pass == ConvPass::forward ? kForward : pass == ConvPass::backward_data ? kData : kWeights;
}

Descriptor window(const Session& session, const ConvShape& shape) {
  const std::array<std::int64_t, 2> padding{shape.padding, shape.padding};
  const std::array<std::int64_t, 2> strides{shape.stride, shape.stride};
  const std::array<std::int64_t, 2> dilations{1, 1};
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor made = session.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .finalize();
  return made;
}

using ConvOperand = void* ConvOperands::*;

// The tensors of a pass without those of its epilogue, what it writes last.
std::array<ConvOperand, 3> tensors_in_order(ConvPass pass) {
  using Of = ConvOperands;
  switch (pass) {
    case ConvPass::forward:
      return {&Of::x, &Of::w, &Of::y};
    case ConvPass::backward_data:
      return {&Of::y, &Of::w, &Of::x};
    default:
      return {&Of::y, &Of::x, &Of::w};
  }
}

std::vector<ConvOperand> in_order(const ConvRequest& request) {
  const auto tensors = tensors_in_order(request.pass);
  std::vector<ConvOperand> order(tensors.begin(), tensors.end());
  if (has_vector(request.epilogue)) order.push_back(&ConvOperands::bias);
  if (has_before(request.epilogue)) order.push_back(&ConvOperands::before);
  return order;
}

// GELU and its slope are operations behind the product, in the order of in_order(); other epilogues
// are not for cuDNN.
std::shared_ptr<const OperationGraph> make_graph(const std::shared_ptr<Session>& session,
                                                 const ConvRequest& request) {
  using Tensor = GraphBuilder::Tensor;
  const ConvShape& s = request.shape;
  const cudnnDataType_t stored = cudnn_type(stored_as(s.math));
  const GraphBuilder::Size of_x = {s.batch, s.in, s.height, s.width},
                           of_y = {s.batch, s.out, s.out_height(), s.out_width()};
  GraphBuilder builder(session);
  Tensor x{}, w{}, y{};
  for (const ConvOperand operand : tensors_in_order(request.pass)) {
    if (operand == &ConvOperands::x) x = builder.tensor(stored, of_x);
    if (operand == &ConvOperands::w) w = builder.tensor(stored, {s.out, s.in, s.kernel, s.kernel});
    if (operand == &ConvOperands::y) y = builder.tensor(stored, of_y);
  }
  if (request.epilogue == Epilogue::bias_gelu) {
    const Tensor bias = builder.tensor(stored, {1, s.out, 1, 1}),
                 before = builder.tensor(stored, of_y), product = builder.between(of_y);
    builder.convolution(request.pass, s, x, w, product);
    builder.pointwise(CUDNN_POINTWISE_ADD, product, bias, before);
    builder.pointwise(CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, before, y);
  } else if (request.epilogue == Epilogue::gelu_gradient) {
    const Tensor before = builder.tensor(stored, of_x), product = builder.between(of_x);
    builder.convolution(request.pass, s, product, w, y);
    builder.slope(CUDNN_POINTWISE_GELU_APPROX_TANH_BWD, before, product, x);
  } else {
    builder.convolution(request.pass, s, x, w, y, request.accumulates);
  }
  return builder.finish();
}

}  // namespace

cudnnDataType_t cudnn_type(DType type) {
  return type == DType::bf16  ? CUDNN_DATA_BFLOAT16
         : type == DType::f16 ? CUDNN_DATA_HALF
                              : CUDNN_DATA_FLOAT;
}

OperationGraph::OperationGraph(std::shared_ptr<Session> session, std::vector<Descriptor> parts,
                               std::vector<Descriptor> operations, std::size_t tensors)
    : session_(std::move(session)),
      parts_(std::move(parts)),
      operations_(std::move(operations)),
      graph_(session_->make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph")),
      tensors_(tensors) {
  session_->name_card(graph_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, std::nullopt);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_).finalize();
}

GraphBuilder::GraphBuilder(std::shared_ptr<Session> session) : session_(std::move(session)) {}

GraphBuilder::Tensor GraphBuilder::add_tensor(cudnnDataType_t type, const Size& size,
                                              const Size& strides, Place place) {
  const bool is_virtual = place == Place::between;
  const std::size_t id = is_virtual ? kFirstBetween + between_++ : ++tensors_;
  Descriptor made = session_->make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, size)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<std::int64_t>(id))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16})
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  if (place == Place::host) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  made.finalize();
  return add_part(std::move(made));
}

std::size_t GraphBuilder::add_part(Descriptor part) {
  parts_.push_back(std::move(part));
  return parts_.size() - 1;
}

Descriptor& GraphBuilder::add_operation(cudnnBackendDescriptorType_t type, const char* noun) {
  operations_.push_back(session_->make(type, noun));
  return operations_.back();
}

void GraphBuilder::convolution(ConvPass pass, const ConvShape& shape, Tensor x, Tensor w, Tensor y,
                               bool accumulates) {
  const std::size_t at = add_part(window(*session_, shape));
  const PassNames& names = point_names(pass);
  add_operation(names.operation, "operation of a convolution")
      .set(names.x, parts_[x])
      .set(names.w, parts_[w])
      .set(names.y, parts_[y])
      .set(names.window, parts_[at])
      .set(names.alpha, 1.0F)  // of the type that it computes in: a double's lower half is 0
      .set(names.beta, accumulates ? 1.0F : 0.0F)
      .finalize();
}

void GraphBuilder::add_pointwise(cudnnPointwiseMode_t mode, Named tensors, int axis) {
  Descriptor made = session_->make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  made.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (axis >= 0) made.set(CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{axis});
  made.finalize();
  const std::size_t at = add_part(std::move(made));
  Descriptor& operation =
      add_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation")
          .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_[at]);
  for (const auto& [name, tensor] : tensors) operation.set(name, parts_[tensor]);
  operation.finalize();
}

void GraphBuilder::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor y) {
  add_pointwise(mode, {{kX, x}, {kY, y}});
}

void GraphBuilder::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y) {
  add_pointwise(mode, {{kX, x}, {kB, b}, {kY, y}});
}

void GraphBuilder::slope(cudnnPointwiseMode_t mode, Tensor x, Tensor dy, Tensor dx) {
  add_pointwise(mode, {{kX, x},
                       {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy},
                       {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx}});
}

void GraphBuilder::select(Tensor mask, Tensor x, Tensor b, Tensor y) {
  add_pointwise(CUDNN_POINTWISE_BINARY_SELECT,
                {{kX, x}, {kB, b}, {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, mask}, {kY, y}});
}

void GraphBuilder::indices(Tensor x, int axis, Tensor y) {
  add_pointwise(CUDNN_POINTWISE_GEN_INDEX, {{kX, x}, {kY, y}}, axis);
}

void GraphBuilder::reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor y) {
  Descriptor made = session_->make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
  made.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .finalize();
  const std::size_t at = add_part(std::move(made));
  add_operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "operation of a reduction")
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, parts_[at])
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, parts_[x])
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, parts_[y])
      .finalize();
}

void GraphBuilder::matmul(Tensor left, Tensor right, Tensor product) {
  Descriptor made = session_->make(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matrix product");
  made.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  const std::size_t at = add_part(std::move(made));
  add_operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "operation of a matrix product")
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, parts_[at])
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, parts_[left])
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, parts_[right])
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, parts_[product])
      .finalize();
}

void GraphBuilder::reshape(Tensor x, Tensor y) {
  add_operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape")
      .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, parts_[x])
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, parts_[y])
      .finalize();
}

std::shared_ptr<const OperationGraph> GraphBuilder::finish() {
  return std::make_shared<OperationGraph>(session_, std::move(parts_), std::move(operations_),
                                          tensors_);
}

Support admits(const EngineRules& rules, const EngineNotes& notes) {
  if (notes.reorders_filter) return Support::no("wants reordered weights");
  if (notes.narrow_sums) return Support::no("sums in less than fp32");
  if (notes.converts_inputs) return Support::no("converts its inputs to a narrower type");
  if (rules.math == Math::fp32) {
    if (notes.tensor_cores) return Support::no("multiplies on tensor cores, in less than fp32");
    if (notes.large_winograd_tiles) return Support::no("loses digits in large Winograd tiles");
  } else if (notes.winograd || notes.fourier) {
    return Support::no("loses digits in a transform");
  }
  if (rules.deterministic && notes.varies) return Support::no("varies from run to run");
  if (notes.compiles && !rules.may_compile) return Support::no("is compiled at run time");
  return Support::yes();
}

Operands make_operands(const ConvRequest& request, const ConvOperands& operands) {
  Operands placed;
  placed.workspace = operands.workspace;
  auto to = placed.tensors.begin();
  for (const ConvOperand member : in_order(request)) *to++ = operands.*member;
  return placed;
}

ConvOperands conv_operands(const ConvRequest& request, const Operands& operands) {
  ConvOperands result{.workspace = operands.workspace};
  auto from = operands.tensors.begin();
  for (const ConvOperand member : in_order(request)) result.*member = *from++;
  return result;
}

Offered cudnn_offer(const std::shared_ptr<Session>& session, const ConvRequest& request,
                    const EngineRules& rules) {
  return offered_engines(make_graph(session, request), rules);
}

std::shared_ptr<Implementation> build_convolution(const std::shared_ptr<Session>& session,
                                                  const ConvRequest& request,
                                                  const EngineRules& rules, const Recipe& recipe) {
  return build_engine(make_graph(session, request), rules, recipe);
}

}  // namespace paceline::cuda
