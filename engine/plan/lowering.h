// Converts layers to operations with shapes, one per layer, before fusion.
#pragma once

#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

// In layer order, between a cast_input and the loss. Throws usage if shapes do not match.
std::vector<Operation> lower(const Network& network);

}  // namespace paceline
