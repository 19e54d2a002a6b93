// Places tensors with known lifetimes into one arena.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/plan/plan.h"

namespace paceline {

// Gives each tensor an offset so that tensors alive at the same time never overlap; largest first,
// each at the lowest place that is free during its whole life. Returns the arena's size in bytes.
std::size_t place_tensors(std::vector<TensorInfo>& tensors);

}  // namespace paceline
