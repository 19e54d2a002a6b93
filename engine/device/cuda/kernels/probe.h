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

// What separates a result from a reference, of a block or of them all.
struct ResultDifference {
  double squares = 0;            // of the differences; NaN where an element is not finite
  double reference_squares = 0;  // of the reference's elements
  double largest = 0;            // difference
  double changed = 0;            // elements whose bits differ

  PACELINE_KERNEL void add(const ResultDifference& other) {
    squares += other.squares;
    reference_squares += other.reference_squares;
    largest = other.largest > largest ? other.largest : largest;
    changed += other.changed;
  }
};

template <typename T>
PACELINE_KERNEL inline std::uint32_t to_bits(T value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename T>
struct Compare {
  static constexpr unsigned kThreads = 256;
  const T *result, *reference;
  std::size_t count;
  ResultDifference* differences;  // by block

  static constexpr std::size_t shared_bytes() { return kThreads * sizeof(ResultDifference); }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    ResultDifference mine;
    over(c, count, [&](std::size_t i) {
      const T found = result[i], expected = reference[i];
      const auto a = static_cast<double>(to_float(found)),
                 b = static_cast<double>(to_float(expected));
      const double off = a > b ? a - b : b - a;
      mine.add({off * off, b * b, off, to_bits(found) != to_bits(expected) ? 1.0 : 0.0});
    });
    auto* shared = c.template shared<ResultDifference>();
    shared[c.thread()] = mine;
    for (unsigned half = c.threads() / 2; half > 0; half /= 2) {
      c.sync();
      if (c.thread() < half) shared[c.thread()].add(shared[c.thread() + half]);
    }
    if (c.thread() == 0) differences[c.block()] = shared[0];
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

}  // namespace paceline::cuda
