// Operations that one pass over memory can do together.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

// Where an operation's output has one reader, both become one operation if the device supports it;
// of several fusions the longest is taken:
//
//   dense + ReLU + dropout             conv + ReLU + max pooling
//   batch_norm + ReLU + max pooling    batch_norm + add + ReLU
//   batch_norm + batch_norm of the other summand + add + ReLU
//
// `notes` gets a line for each fusion refused. Throws usage for an operation that the device does
// not support at all.
std::vector<Operation> fuse(const std::vector<Operation>& operations, const Supports& supports,
                            std::vector<std::string>* notes);

}  // namespace paceline
