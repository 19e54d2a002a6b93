#include "engine/device/cuda/fusions.h"

#include <algorithm>

#include "engine/device/cuda/conv_shape.h"

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

}  // namespace paceline::cuda
