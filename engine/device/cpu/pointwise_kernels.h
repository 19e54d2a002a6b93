// The inner loops of a 1x1 convolution in bf16 with fp32 sums. The input needs no packing: in NHWC
// the channels of a place are adjacent, and so are the two values of a pair that one instruction
// (vdpbf16ps) reads. A *panel* of weights has, for each pair of inputs, a 32-bit word for each of
// 32 outputs.
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

// Sums over places for a batch_norm, computed in the same pass. For the written values:
//   s += y - pivot,  q += (y - pivot)^2
// For the gradient of the batch_norm's output (`x` is not null), with g = y where ReLU passes the
// element:
//   s += g,  q += g (x - pivot),  q2 += g (x2 - pivot2)
struct PointwiseSums {
  const float* pivot;
  float *s, *q;
  const Bf16* const* x = nullptr;              // of 8 places
  const std::uint8_t* const* signs = nullptr;  // of 8 places, one bit per output; null: no ReLU
  const Bf16* const* x2 = nullptr;             // the other summand's; may be null
  const float* pivot2 = nullptr;
  float* q2 = nullptr;
};

// y = x w + bias at 8 places for 32 outputs, starting at `output`. Arrays indexed by output,
// including those of the sums, start at output 0.
struct PointwiseWork {
  const Bf16* const* x;  // of 8 places; unused ones may repeat others
  const std::uint32_t* panel;
  std::size_t pairs;
  const float* bias;  // may be null
  Bf16* const* y;     // of 8 places; null for unused ones
  std::size_t output;
  bool adds;                            // accumulates into y
  bool streams = false;                 // writes y past the caches
  const PointwiseSums* sums = nullptr;  // may be null
  std::size_t counted = 0;              // number of leading places that enter the sums
  const std::byte* ahead = nullptr;     // memory to prefetch, which is used later
  std::size_t ahead_lines = 0;          // of 64 bytes
};

struct PointwiseKernels {
  void (*weights)(const PointwiseWeightsWork& work) = nullptr;
  void (*product)(const PointwiseWork& work) = nullptr;
};

}  // namespace paceline::cpu
