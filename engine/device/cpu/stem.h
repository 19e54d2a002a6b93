// The fusion with a loop of its own: 3x3 convolution of a one-channel sample, ReLU and 2x2 max
// pooling.
#pragma once

#include "engine/plan/plan.h"

namespace paceline::cpu {

inline bool is_stem(const Operation& op) {
  return op.kind == OpKind::conv && op.from == 0 && op.relu && op.pool == 2 &&
         op.in.channels == 1 && op.kernel == 3 && op.stride == 1 && op.padding == 0 &&
         op.out.channels % 16 == 0 && op.in.height % 2 == 0 && op.in.width % 2 == 0;
}

}  // namespace paceline::cpu
