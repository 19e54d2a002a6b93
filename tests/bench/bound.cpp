#include "tests/bench/bound.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>

namespace paceline::bench {

CopyBound::CopyBound(std::size_t bytes_moved)
    : from_(host_memory(std::max<std::size_t>(1, bytes_moved / 2))),
      to_(host_memory(from_.bytes())) {}

double CopyBound::run() {
  std::memcpy(to_.data(), from_.data(), from_.bytes());
  benchmark::ClobberMemory();
  return 2 * static_cast<double>(from_.bytes());
}

}  // namespace paceline::bench
