// The products that networks need, and their names.
#pragma once

#include <string>
#include <vector>

#include "engine/device/cuda/conv_shape.h"
#include "engine/plan/plan.h"

namespace paceline::cuda {

// "forward 32x75x75x64 to 256 bf16", "backward_data 32x75x75x64 to 64, 3x3 / 2 + 1, bf16, adds".
// Unique per request; also used in files.
std::string to_text(const ConvRequest& request);
std::string to_text(const MatmulShape& shape);
const char* to_string(Math math);
const char* to_string(ConvPass pass);

// Every convolution of a step, without duplicates.
std::vector<ConvRequest> conv_requests(const Plan& plan, Math math);

}  // namespace paceline::cuda
