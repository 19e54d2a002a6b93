// The memory layout of planes. oneDNN's fp32 kernels prefer channels in blocks of 16. bf16 uses
// NHWC. A dense layer reads its input as flattened NHWC.
#pragma once

#include <vector>

#include "engine/plan/plan.h"

namespace paceline::cpu {

enum class Layout { nhwc, nchw, blocked };

constexpr int kBlock = 16;  // channels of an image in a blocked layout

const char* to_string(Layout layout);

// One layout per tensor of the plan. `blocked_pays`: oneDNN runs fp32 on AVX-512 here.
std::vector<Layout> choose_layouts(const Plan& plan, bool blocked_pays);

}  // namespace paceline::cpu
