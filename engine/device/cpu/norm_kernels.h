// The loops of batch normalisation: sums over rows, and the elementwise pass with the following
// addition and ReLU. Rows are places of a plane, `channels` wide, without gaps. NHWC is a single
// run of rows; a blocked layout has one run per block of 16 channels.
//
//   y  = a x + b                  a = gamma / sqrt(variance + epsilon), b = beta - a mean
//   dx = a g + c1 x + c0          g = dy but 0 where y <= 0; see norm.cpp for c1 and c0
//
// Sums are of x - pivot, any value near the mean, to avoid cancellation in the variance.
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

// y = a x + b + skip, then ReLU. skip is absent, unmodified, or normalised as well (a2 skip + b2).
template <typename T>
struct NormApply {
  const T* x;
  T* y;
  std::size_t rows, channels;
  const float *a, *b;
  const T* skip = nullptr;
  const float *a2 = nullptr, *b2 = nullptr;
  std::uint8_t* signs = nullptr;  // with ReLU: one bit per element, set if it passes
  bool streams = false;           // writes y past the caches
};

// Adds to s = sum of g, q = sum of g (x - pivot), and q2, the same for x2.
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
  T* residual = nullptr;  // receives g; may equal dy
  bool adds_residual = false;
  const T* x2 = nullptr;  // the normalised other summand
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
