// Is an all-reduce right? Every rank fills its data with small whole numbers that depend on rank
// and offset, whose sums are exact in every type, 16-bit ones too (up to 64 ranks in bf16); after
// the all-reduce each element is compared.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/core/dtype.h"

namespace paceline {

void fill_for_check(void* data, std::size_t count, DType type, int rank);

struct SumCheck {
  std::size_t wrong = 0;         // elements
  std::size_t first_offset = 0;  // of the first wrong one, in elements
  double got = 0, expected = 0;
};
SumCheck check_sum(const void* data, std::size_t count, DType type, int ranks);

// "rank 1: 3 of 1000 elements of bf16 are wrong, the first at offset 17: 4, not 6".
std::string describe(const SumCheck& check, std::size_t count, DType type, int rank);

}  // namespace paceline
