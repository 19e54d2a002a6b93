// Kernels for Device::probe() and for trying algorithms.
#pragma once

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

// Multiply-adds in eight independent chains per thread. `out` keeps them from being optimized away.
struct MultiplyAdd {
  static constexpr int kChains = 8;
  float* out;
  int rounds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    float chains[kChains];
    for (int i = 0; i < kChains; ++i) chains[i] = static_cast<float>(c.thread() + i);
    for (int r = 0; r < rounds; ++r) {
      for (float& chain : chains) chain = chain * 0.999F + 0.5F;
    }
    float sum = 0;
    for (const float chain : chains) sum += chain;
    out[static_cast<std::size_t>(c.block()) * c.threads() + c.thread()] = sum;
  }
};

// Uniform in [-1, 1).
template <typename T>
struct Randomize {
  T* out;
  std::size_t count;
  std::uint32_t seed;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, count, [&](std::size_t i) {
      std::uint32_t x = static_cast<std::uint32_t>(i) * 0x9E3779B9U + seed * 0x85EBCA6BU;
      x = (x ^ x >> 16) * 0x7FEB352DU;
      x = (x ^ x >> 15) * 0x846CA68BU;
      x ^= x >> 16;
      out[i] = from_float<T>(static_cast<float>(x >> 8) * (2.0F / (1 << 24)) - 1);
    });
  }
};

struct CopyBytes {
  const Packed<float>* from;
  Packed<float>* to;
  std::size_t count;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, count, [&](std::size_t i) { to[i] = from[i]; });
  }
};

}  // namespace paceline::cuda
