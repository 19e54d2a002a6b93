// Finds convolutions in a plan that can compute the sums of a batch normalization, which saves
// reading a plane.
#pragma once

#include <vector>

#include "engine/device/cuda/fused.h"
#include "engine/plan/plan.h"

namespace paceline::cuda {

// Both are indices of operations in the plan.
struct Fusion {
  int conv, norm;
  bool branch = false;  // for forward sums: those of the norm's branch
};

// Only the normalization reads the convolution's output.
std::vector<Fusion> statistics_fusions(const Plan& plan);

// After the convolution's backward, nothing writes to the gradient of the normalization's output.
// So the sum is final and can be masked by the normalization's ReLU in the same pass.
std::vector<Fusion> gradient_fusions(const Plan& plan);

FusedRequest statistics_request(const Plan& plan, const Fusion& fusion, Math math);
FusedRequest gradient_request(const Plan& plan, const Fusion& fusion, Math math);

}  // namespace paceline::cuda
