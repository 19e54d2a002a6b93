// Places tensors with known lifetimes in one arena.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

// Assigns an offset to each tensor, so that tensors alive at the same time never overlap. Largest
// first, each at the lowest offset that is free during its whole life. Returns the size of the
// arena in bytes.
std::size_t place_tensors(std::vector<TensorInfo>& tensors);

}  // namespace paceline
