// What a device may answer the planner.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

inline Support fuse_all(const Operation&) {
  return Support::yes();
}
inline Support fuse_nothing(const Operation& op) {
  return op.fused() ? Support::no("it fuses nothing") : Support::yes();
}

// What its operations say of themselves, in order.
inline std::vector<std::string> texts(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Operation& op : plan.operations) texts.push_back(op.text());
  return texts;
}

}  // namespace paceline
