// From layers to operations with shapes, one operation a layer, before any fusion.
#pragma once

#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

// In the order of the layers, between a cast_input and the loss. Throws usage where shapes do not
// fit together.
std::vector<Operation> lower(const Network& network);

}  // namespace paceline
