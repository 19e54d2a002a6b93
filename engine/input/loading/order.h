// The order of samples: a pure function of (seed, epoch), independent of the number of ranks and
// threads.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

// A permutation of 0..samples-1. `buffer` 0 shuffles the whole set. N simulates a shuffle buffer of
// N samples: it is filled in file order, and each sample drawn from it is replaced by the next one
// of the file.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::size_t samples,
                                       std::size_t buffer);

// Rank r's part of a global batch of `count` samples: [count r / N, count (r + 1) / N).
struct Slice {
  std::size_t begin = 0, count = 0;
};
Slice take_slice(std::size_t count, int rank, int ranks);

}  // namespace paceline
