// What a device may answer the planner.
#pragma once

#include "engine/plan/plan.h"

namespace paceline {

inline Support fuse_all(const Operation&) {
  return Support::yes();
}
inline Support fuse_nothing(const Operation& op) {
  return op.fused() ? Support::no("it fuses nothing") : Support::yes();
}

}  // namespace paceline
