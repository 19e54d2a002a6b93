// How a tensor's planes lie in memory. oneDNN's Winograd convolutions and its fp32 kernels want
// channels in blocks of 16; bf16 wants NHWC; a dense layer reads its input as NHWC, flattened.
#pragma once

#include <vector>

#include "engine/plan/plan.h"

namespace paceline::cpu {

enum class Layout { nhwc, nchw, blocked };

constexpr int kBlock = 16;  // channels of a blocked layout's image

const char* name_of(Layout layout);

// Of each tensor of the plan. `blocked_pays`: oneDNN runs fp32 on AVX-512 here.
std::vector<Layout> choose_layouts(const Plan& plan, bool blocked_pays);

}  // namespace paceline::cpu
