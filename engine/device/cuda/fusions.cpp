#include <algorithm>
#include <type_traits>

#include "engine/core/log.h"
#include "engine/device/cuda/products.h"
#include "engine/device/cuda/program.h"

namespace paceline::cuda {

namespace {

const Operation& at(const Plan& plan, int index) {
  return plan.operations[static_cast<std::size_t>(index)];
}

int operation_count(const Plan& plan) {
  return static_cast<int>(plan.operations.size());
}

std::vector<int> find_readers(const Plan& plan, int index) {
  std::vector<int> readers;
  for (int i = index + 1; i < operation_count(plan); ++i) {
    const Operation& op = at(plan, i);
    if (op.from == index) readers.push_back(i);
    if (op.from2 == index) readers.push_back(i);
  }
  return readers;
}

bool touches_gradient(const Operation& op, int tensor) {
  return op.output_grad == tensor || op.input_grad == tensor || op.input2_grad == tensor;
}

template <typename T>
void run_apart(Runtime& runtime, const ConvRequest& request, ConvPlan& product,
               const ConvOperands& o, Stream stream) {
  const ConvShape& shape = request.shape;
  const std::size_t rows = std::size_t{1} * shape.batch * shape.height * shape.width;
  const auto elements = [&](int channels) { return rows * static_cast<std::size_t>(channels); };
  const auto launch = [&](const auto& kernel, std::size_t count) {
    launch_over(runtime, kernel, (count + kVector - 1) / kVector, stream);
  };
  const std::size_t count = elements(shape.out);
  auto *x = static_cast<T*>(o.x), *y = static_cast<T*>(o.y), *before = static_cast<T*>(o.before);
  const auto* bias = static_cast<const T*>(o.bias);
  if (!has_gelu(request.epilogue)) {
    product.run({o.x, o.w, o.y, o.workspace}, stream);
    return launch(AddBias<T>{y, bias, count, shape.out, false, before}, count);
  }
  if constexpr (!std::is_same_v<T, Half>) {  // in which there are no networks of tokens
    if (request.epilogue == Epilogue::gelu_gradient) {
      product.run({o.x, o.w, o.y, o.workspace}, stream);
      return launch(Gelu<T>{before, x, x, elements(shape.in)}, elements(shape.in));
    }
    product.run({o.x, o.w, o.before, o.workspace}, stream);
    launch(BiasGelu<T>{before, bias, y, count, shape.out}, count);
  } else {
    throw Error(ErrorKind::internal, "there is no GELU in fp16");
  }
}

}  // namespace

std::vector<Fusion> statistics_fusions(const Plan& plan) {
  std::vector<Fusion> found;
  const auto consider = [&](int conv, int norm, bool branch) {
    if (conv == kNone) return;
    const Operation& op = at(plan, conv);
    // A bias that cancels is not added, and nothing else reads the output.
    if (op.kind == OpKind::conv && op.bias_cancels && op.out == at(plan, norm).in) {
      found.push_back({conv, norm, branch});
    }
  };
  for (int i = 0; i < operation_count(plan); ++i) {
    const Operation& op = at(plan, i);
    if (op.kind != OpKind::batch_norm) continue;
    consider(op.from, i, false);
    if (op.branch) consider(op.from2, i, true);
  }
  return found;
}

ConvApart product_apart(Runtime& runtime, const ConvRequest& request,
                        std::shared_ptr<ConvPlan> product) {
  const std::size_t workspace = product->workspace_bytes();
  const std::string implementation = product->implementation();
  const auto run = [&runtime, request, product = std::move(product)](const ConvOperands& o,
                                                                     Stream stream) {
    with_type(stored_as(request.shape.math),
              [&](auto type) { run_apart<decltype(type)>(runtime, request, *product, o, stream); });
  };
  return {run, workspace, implementation};
}

int epilogue_behind(const Plan& plan, int product) {
  // Only the very next one: before that, the memory of its output may hold something else.
  if (find_readers(plan, product) != std::vector{product + 1}) return kNone;
  const Operation& op = at(plan, product + 1);
  const bool adds = op.kind == OpKind::add && op.from == product;
  return adds || op.kind == OpKind::gelu ? product + 1 : kNone;
}

int gelu_before(const Plan& plan, int product) {
  const Operation& op = at(plan, product);
  if (op.from == kNone || at(plan, op.from).kind != OpKind::gelu) return kNone;
  const Operation& gelu = at(plan, op.from);
  const bool found = find_readers(plan, op.from).size() == 1 && gelu.input_grad != kNone &&
                     gelu.input_grad == gelu.output_grad && !op.adds_input_grad;
  return found ? op.from : kNone;
}

// Backward goes from the last operation to the first: the last to write is the first to read.
std::vector<Fusion> gradient_fusions(const Plan& plan) {
  std::vector<Fusion> found;
  for (int norm = 0; norm < operation_count(plan); ++norm) {
    const Operation& op = at(plan, norm);
    if (op.kind != OpKind::batch_norm || !op.relu || op.pool || op.branch) continue;
    const std::vector<int> readers = find_readers(plan, norm);
    if (readers.empty()) continue;
    const int conv = readers.front();
    const Operation& reader = at(plan, conv);
    if (reader.kind != OpKind::conv || reader.stride != 1 || reader.in != op.out) continue;
    if (op.output_grad == kNone || reader.input_grad != op.output_grad) continue;
    bool between = false;
    for (int i = norm + 1; i < conv; ++i) {
      between = between || touches_gradient(at(plan, i), op.output_grad);
    }
    if (!between) found.push_back({conv, norm});
  }
  return found;
}

FusedRequest statistics_request(const Plan& plan, const Fusion& fusion, Math math) {
  return {conv_shape(at(plan, fusion.conv), plan.batch, math), FusedKind::forward_sums};
}

FusedRequest gradient_request(const Plan& plan, const Fusion& fusion, Math math) {
  const Operation& conv = at(plan, fusion.conv);
  // Behind an addition the normalization alone does not say where ReLU let the gradient pass.
  const bool adds = at(plan, fusion.norm).add;
  return {conv_shape(conv, plan.batch, math),
          adds ? FusedKind::backward_mask_sums : FusedKind::backward_relu_sums,
          conv.adds_input_grad};
}

// Which convolutions compute a normalization's sums beside their own work; see program.h.

namespace {

// A normalization whose every vector is one that may be written as anything.
NormState any_state(void* vector) {
  auto* at = static_cast<float*>(vector);
  return {at, at, at, at, at, at, at};
}

NormParameters any_parameters(void* vector) {
  auto* at = static_cast<float*>(vector);
  return {at, at, nullptr, at, at, at, at, 1, 0};
}

}  // namespace

std::size_t CudaProgram::count_rows(const Operation& norm) const {
  return whole_batch() * static_cast<std::size_t>(norm.in.height * norm.in.width);
}

// What fused convolutions are weighed against needs the room for sums, so this comes last.
void CudaProgram::fuse() {
  const std::size_t before = workspace_bytes_;
  const std::vector<Fusion> forward = statistics_fusions(plan_), backward = gradient_fusions(plan_);
  std::vector<FusedRequest> requests;
  for (const Fusion& one : forward) {
    requests.push_back(statistics_request(plan_, one, options_.math));
  }
  for (const Fusion& one : backward) {
    requests.push_back(gradient_request(plan_, one, options_.math));
  }
  products_.announce(requests);
  std::size_t taken = 0;
  for (const Fusion& fusion : forward) taken += fuse_statistics(fusion) ? 1 : 0;
  for (const Fusion& fusion : backward) taken += fuse_gradient(fusion) ? 1 : 0;
  log::info("{} of {} convolutions compute batch_norm's sums beside their own work", taken,
            forward.size() + backward.size());
  if (workspace_bytes_ == before) return;
  own_bytes_ -= workspace_.bytes();
  workspace_ = own(workspace_bytes_);
}

// `operands` lacks the workspace, and the sums, which get memory here.
bool CudaProgram::take(std::unique_ptr<FusedPlan> plan, FusedConv& conv, int channels,
                       const FusedOperands& operands) {
  if (!plan) return false;
  const auto count = static_cast<std::size_t>(channels);
  conv.plan = std::move(plan);
  conv.sums = own(2 * count * sizeof(float));
  conv.operands = operands;
  conv.operands.sum = floats(conv.sums);
  conv.operands.sum_of_products = floats(conv.sums) + count;
  need_workspace(conv.plan->workspace_bytes());
  return true;
}

bool CudaProgram::fuse_statistics(const Fusion& fusion) {
  const Operation &op = operation(fusion.conv), &norm = operation(fusion.norm);
  Prepared& prepared = prepared_[static_cast<std::size_t>(fusion.conv)];
  PreparedConv& conv = *prepared.conv;
  const std::size_t rows = count_rows(norm);
  const int channels = op.out.channels;
  FusedBaseline baseline;
  baseline.apart = [&](const FusedOperands& o, Stream stream) {
    conv.forward->run({o.x, o.w, o.y, workspace_.data()}, stream);
    with_type(plan_.activation, [&](auto type) {
      using T = decltype(type);
      run_sums(NormStatistics<T>{static_cast<const T*>(o.y), rows, channels, any_state(o.sum),
                                 any_parameters(o.sum)},
               rows, channels, stream);
    });
  };
  baseline.behind = [&](const FusedOperands& o, Stream stream) {
    run(NormFromSums{static_cast<float*>(o.sum), static_cast<float*>(o.sum_of_products), rows,
                     channels, any_state(o.sum), any_parameters(o.sum)},
        static_cast<std::size_t>(channels), stream);
  };
  FusedOperands operands;
  operands.x = conv_input(op, conv);
  operands.w = conv.w;
  operands.y = tensor<std::byte>(op.output);
  FusedConv& fused = conv.with_statistics;
  if (!take(products_.fused(statistics_request(plan_, fusion, options_.math), baseline), fused,
            channels, operands)) {
    return false;
  }
  Prepared& of_norm = prepared_[static_cast<std::size_t>(fusion.norm)];
  (fusion.branch ? of_norm.branch_statistics : of_norm.statistics) = &fused.operands;
  prepared.implementation += "; with sums " + fused.plan->implementation();
  return true;
}

bool CudaProgram::fuse_gradient(const Fusion& fusion) {
  const Operation &op = operation(fusion.conv), &norm = operation(fusion.norm);
  PreparedConv& conv = *prepared_[static_cast<std::size_t>(fusion.conv)].conv;
  Prepared& of_norm = prepared_[static_cast<std::size_t>(fusion.norm)];
  const std::size_t rows = count_rows(norm);
  const int channels = op.in.channels;
  FusedBaseline baseline;
  baseline.apart = [&](const FusedOperands& o, Stream stream) {
    conv.backward_data->run({o.x, o.w, o.y, workspace_.data()}, stream);
    with_type(plan_.activation, [&](auto type) {
      using T = decltype(type);
      // Any bits will do for the signs; a plane holds more than enough of them.
      const void* signs = o.mask ? o.mask : o.z;
      run_sums(NormGradientSums<T, false>{static_cast<const T*>(o.z), nullptr,
                                          static_cast<const T*>(o.x),
                                          static_cast<const std::uint8_t*>(signs), rows, channels,
                                          any_state(o.sum), NormState{}, any_parameters(o.sum),
                                          NormParameters{}},
               rows, channels, stream);
    });
  };
  baseline.behind = [&](const FusedOperands& o, Stream stream) {
    run(NormFactorsFromSums{static_cast<float*>(o.sum), static_cast<float*>(o.sum_of_products),
                            rows, channels, any_state(o.sum), any_parameters(o.sum)},
        static_cast<std::size_t>(channels), stream);
  };
  FusedOperands operands;
  operands.x = tensor<std::byte>(op.input_grad);
  operands.w = conv.w;
  operands.y = tensor<std::byte>(op.output_grad);
  operands.scale = of_norm.norm.scale;
  operands.shift = of_norm.norm.shift;
  operands.z = tensor<std::byte>(norm.input);
  operands.mask = tensor<std::byte>(norm.saved);
  operands.branch = operands.x;  // each element is read before it is written
  FusedConv& fused = conv.with_gradient_sums;
  if (!take(products_.fused(gradient_request(plan_, fusion, options_.math), baseline), fused,
            channels, operands)) {
    return false;
  }
  of_norm.gradient_sums = &fused.operands;
  of_norm.implementation += "; gradient's sums " + fused.plan->implementation();
  return true;
}

// Sums are over whole batches, and an evaluation takes none.
bool CudaProgram::sums_are_fused() const {
  return mode_ == Mode::train && samples_ == plan_.batch;
}

void CudaProgram::run_fused(const FusedConv& conv) {
  FusedOperands operands = conv.operands;
  operands.workspace = workspace_.data();
  conv.plan->run(operands, compute_.stream());
}

}  // namespace paceline::cuda
