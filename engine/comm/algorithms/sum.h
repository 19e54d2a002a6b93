// The arithmetic of an all-reduce. 16-bit floats are added in fp32 and rounded once (to nearest
// even).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "engine/comm/algorithms/node_communicator.h"
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

// All-reduce over the parts that ranks of a node share, wherever the data lies.

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

// Checks an all-reduce. Every rank fills its data with small whole numbers that depend on rank and
// offset. Their sums are exact in every type (bf16: up to 64 ranks). After the all-reduce, each
// element is compared.

void fill_for_check(void* data, std::size_t count, DType type, int rank);

struct SumCheck {
  std::size_t wrong = 0;         // elements
  std::size_t first_offset = 0;  // of the first wrong element, in elements
  double got = 0, expected = 0;
};
SumCheck check_sum(const void* data, std::size_t count, DType type, int ranks);

// "rank 1: 3 of 1000 elements of bf16 are wrong, the first at offset 17: 4, not 6".
std::string describe(const SumCheck& check, std::size_t count, DType type, int rank);

}  // namespace paceline
