#include "tests/bench/bound.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>

namespace paceline::bench {

namespace {

// As wide as the CPU allows, since in caches the width of loads counts.
#if defined(__x86_64__)
__attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#endif
void triad(float* __restrict x, const float* __restrict y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] += 0.5F * y[i];
}

}  // namespace

TriadBound::TriadBound(std::size_t bytes_moved)
    : x_(host_memory(std::max(sizeof(float), bytes_moved / 3))), y_(host_memory(x_.bytes())) {}

double TriadBound::run() {
  triad(reinterpret_cast<float*>(x_.data()), reinterpret_cast<const float*>(y_.data()),
        x_.bytes() / sizeof(float));
  benchmark::ClobberMemory();
  return 3 * static_cast<double>(x_.bytes());
}

CopyBound::CopyBound(std::size_t bytes_moved)
    : from_(host_memory(std::max<std::size_t>(1, bytes_moved / 2))),
      to_(host_memory(from_.bytes())) {}

double CopyBound::run() {
  std::memcpy(to_.data(), from_.data(), from_.bytes());
  benchmark::ClobberMemory();
  return 2 * static_cast<double>(from_.bytes());
}

}  // namespace paceline::bench
