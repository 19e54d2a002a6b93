// The arithmetic of an all-reduce. 16-bit floats are added in fp32 and rounded once (to nearest
// even).
#pragma once

#include <cstddef>
#include <span>

#include "engine/core/dtype.h"

namespace paceline {

// Throws internal for types that cannot be summed.
void check_summable(DType type);

// to[i] += from[i]. The ranges must not overlap.
void add_to(std::byte* to, const std::byte* from, std::size_t count, DType type);

// Adds elements [begin, end) of all parts in the order of the parts. Writes the sum to the first
// `written` parts.
void sum_parts(std::span<std::byte* const> parts, std::size_t written, std::size_t begin,
               std::size_t end, DType type);

}  // namespace paceline
