// The loops of batch normalisation: sums over rows, and what is done to each element afterwards,
// with the addition and the ReLU that follow. Rows are places of a plane, `channels` wide and
// without gaps: NHWC is one run of rows, a blocked layout has a run of 16 channels a block.
//
//   y  = a x + b                  a = gamma / sqrt(variance + epsilon), b = beta - a mean
//   dx = a g + c1 x + c0          g = dy but 0 where y <= 0; see norm.cpp for c1 and c0
//
// Sums are of x - pivot, any value near the mean, so that the square of a large mean does not eat
// the variance.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::cpu {

// Adds to s = sum of (x - pivot), q = sum of its square.
template <typename T>
struct NormSums {
  const T* x;
  std::size_t rows, channels;
  const float* pivot;
  float *s, *q;
};

// y = a x + b + skip (nothing, itself, or normalised too: a2 skip + b2), and ReLU.
template <typename T>
struct NormApply {
  const T* x;
  T* y;
  std::size_t rows, channels;
  const float *a, *b;
  const T* skip = nullptr;
  const float *a2 = nullptr, *b2 = nullptr;
  std::uint8_t* signs = nullptr;  // with ReLU: a bit an element, set where it passes
  bool streams = false;           // y is written past the caches
};

// Adds to s = sum of g, q = sum of g (x - pivot), q2 the same for x2.
template <typename T>
struct NormGradientSums {
  const T *x, *dy;
  std::size_t rows, channels;
  const float* pivot;
  float *s, *q;
  const std::uint8_t* signs = nullptr;
  const T* x2 = nullptr;
  const float* pivot2 = nullptr;
  float* q2 = nullptr;
};

template <typename T>
struct NormBackward {
  const T *x, *dy;
  T* dx;
  std::size_t rows, channels;
  const float *a, *c1, *c0;
  bool adds_dx = false;
  const std::uint8_t* signs = nullptr;
  T* residual = nullptr;  // gets g; may be dy itself
  bool adds_residual = false;
  const T* x2 = nullptr;  // the other summand's normalisation
  T* dx2 = nullptr;
  const float *a2 = nullptr, *d1 = nullptr, *d0 = nullptr;
  bool adds_dx2 = false;
  bool streams = false;  // dx and dx2 are written past the caches, unless added to
};

template <typename T>
struct NormKernels {
  void (*sums)(const NormSums<T>& work);
  void (*apply)(const NormApply<T>& work);
  void (*gradient_sums)(const NormGradientSums<T>& work);
  void (*backward)(const NormBackward<T>& work);
};

}  // namespace paceline::cpu
