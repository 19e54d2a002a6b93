// The inner loops of a 1x1 convolution in bf16 with fp32 sums, which needs no packing of its input:
// in NHWC the channels of a place lie side by side, and so do the two values of a pair that one
// instruction (vdpbf16ps) takes. A *panel* of weights holds, pair after pair of inputs, a 32-bit
// word for each of 32 outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cpu/bf16.h"

namespace paceline::cpu {

constexpr std::size_t kPointwiseRows = 8, kPointwisePanel = 32;

// w[input * input_stride + output * output_stride] for all inputs (an even number) and 32 outputs.
struct PointwiseWeightsWork {
  const float* w;
  std::size_t inputs, input_stride, output_stride;
  std::uint32_t* panel;
};

// Sums over places that a batch_norm needs, taken on the way: of what is written,
//   s += y - pivot,  q += (y - pivot)^2
// or, where it is the gradient of the batch_norm's output (`x` is not null), with g = y where the
// ReLU let its element pass,
//   s += g,  q += g (x - pivot),  q2 += g (x2 - pivot2)
struct PointwiseSums {
  const float* pivot;
  float *s, *q;
  const Bf16* const* x = nullptr;              // of 8 places
  const std::uint8_t* const* signs = nullptr;  // of 8 places, a bit an output; null: no ReLU
  const Bf16* const* x2 = nullptr;             // the other summand's, or null
  const float* pivot2 = nullptr;
  float* q2 = nullptr;
};

// y = x w + bias at 8 places for 32 outputs, from `output` on. Arrays by output, those of the sums
// too, begin at output 0.
struct PointwiseWork {
  const Bf16* const* x;  // of 8 places; those that are not wanted may repeat others
  const std::uint32_t* panel;
  std::size_t pairs;
  const float* bias;  // or null
  Bf16* const* y;     // of 8 places; null where not wanted
  std::size_t output;
  bool adds;                            // to y
  bool streams = false;                 // y is written past the caches
  const PointwiseSums* sums = nullptr;  // or null
  std::size_t counted = 0;              // places that enter them, the first ones
  const std::byte* ahead = nullptr;     // memory that is used later, fetched meanwhile
  std::size_t ahead_lines = 0;          // of 64 bytes
};

struct PointwiseKernels {
  void (*weights)(const PointwiseWeightsWork& work) = nullptr;
  void (*product)(const PointwiseWork& work) = nullptr;
};

}  // namespace paceline::cpu
