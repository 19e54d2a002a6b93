// Fuses operations that can share one pass over memory.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

// Fuses an operation with the only reader of its output if the device supports the combination. The
// longest supported fusion wins:
//
//   dense + ReLU + dropout             conv + ReLU + max pooling
//   batch_norm + ReLU + max pooling    batch_norm + add + ReLU
//   batch_norm + batch_norm of the other summand + add + ReLU
//
// Adds a line to `notes` for each rejected fusion. Throws usage for an operation that the device
// does not support at all.
std::vector<Operation> fuse(const std::vector<Operation>& operations, const Supports& supports,
                            std::vector<std::string>* notes);

}  // namespace paceline
