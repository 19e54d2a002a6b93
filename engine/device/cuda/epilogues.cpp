#include <type_traits>

#include "engine/core/error.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/tokens.h"
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
    throw internal_error("there is no GELU in fp16");
  }
}

}  // namespace

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

}  // namespace paceline::cuda
