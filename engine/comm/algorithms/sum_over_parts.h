// All-reduce over the parts that ranks of a node share, wherever the data lies.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/comm/algorithms/node_all_reduce.h"

namespace paceline {

// Bytes of a rank's scratch part.
constexpr std::size_t kScratchBytes = std::size_t{1} << 20;

// Calls sum(parts, count) on data inside of the arena in place, and on other data in pieces that
// are copied through the scratch parts. `arena` may be null; `rank` is an index into the parts.
template <typename Arena, typename Sum>
void sum_over_parts(const Arena* arena, std::span<std::byte* const> scratch, std::size_t rank,
                    std::byte* data, std::size_t count, DType type, const Sum& sum) {
  const std::size_t element = size_of(type), most = kScratchBytes / element;
  if (arena && arena->holds(data, count * element)) {
    std::array<std::byte*, kMaxTeam> parts;
    const std::ptrdiff_t offset = data - arena->parts()[rank];
    for (std::size_t r = 0; r < scratch.size(); ++r) parts[r] = arena->parts()[r] + offset;
    return sum(std::span<std::byte* const>(parts).first(scratch.size()), count);
  }
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t n = std::min(most, count - at);
    std::memcpy(scratch[rank], data + at * element, n * element);
    sum(scratch, n);
    std::memcpy(data + at * element, scratch[rank], n * element);
  }
}

}  // namespace paceline
