// Checks an all-reduce. Every rank fills its data with small whole numbers that depend on rank and
// offset. Their sums are exact in every type (bf16: up to 64 ranks). After the all-reduce, each
// element is compared.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/core/dtype.h"

namespace paceline {

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
