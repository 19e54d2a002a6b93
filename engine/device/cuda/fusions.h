// Where a plan lets a convolution compute the sums of a batch normalization beside its own work, so
// that a plane is read once less.
#pragma once

#include <vector>

#include "engine/device/cuda/fused.h"
#include "engine/plan/plan.h"

namespace paceline::cuda {

// Both are operations of the plan.
struct Fusion {
  int conv, norm;
  bool branch = false;  // of forward sums: those of the norm's branch
};

// The convolution's output is read by the normalization and by nothing else.
std::vector<Fusion> statistics_fusions(const Plan& plan);

// Nothing writes the gradient of the normalization's output behind the convolution's backward: what
// it adds to what stands there is all, and may be masked by the normalization's ReLU on the way.
std::vector<Fusion> gradient_fusions(const Plan& plan);

FusedRequest statistics_request(const Plan& plan, const Fusion& fusion, Math math);
FusedRequest gradient_request(const Plan& plan, const Fusion& fusion, Math math);

}  // namespace paceline::cuda
