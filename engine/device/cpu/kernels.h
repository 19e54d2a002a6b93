// Paceline's own loops, compiled once for each instruction set and selected at program start. They
// process the range that the caller gives, and never allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/core/random.h"
#include "engine/device/cpu/bf16.h"
#include "engine/device/cpu/winograd_kernels.h"
#include "engine/device/update.h"

namespace paceline::cpu {

// The loops of batch normalisation: sums over rows, and the elementwise pass with the following
// addition and ReLU. Rows are places of a plane, `channels` wide, without gaps. NHWC is a single
// run of rows; a blocked layout has one run per block of 16 channels.
//
//   y  = a x + b                  a = gamma / sqrt(variance + epsilon), b = beta - a mean
//   dx = a g + c1 x + c0          g = dy but 0 where y <= 0; see norm.cpp for c1 and c0
//
// Sums are of x - pivot, any value near the mean, to avoid cancellation in the variance.

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

// Loops over planes: images of height x width places, `channels` wide, without gaps. NHWC has one
// image per sample; a blocked layout has one per block of 16 channels.

struct Window {
  int height, width;          // of the input image
  int out_height, out_width;  // of the pooled image
  int kernel, stride, padding;
  std::size_t channels;
};

template <typename T>
struct PlaneKernels {
  // `chosen` is the position of the largest element in its window, row by row; ties go to the
  // first.
  void (*max_pool)(const Window& window, const T* x, T* y, std::uint8_t* chosen);
  // Sets dx, or adds to it.
  void (*max_pool_backward)(const Window& window, const T* dy, const std::uint8_t* chosen, T* dx,
                            bool adds);
  // The mean of `rows` places, and its gradient distributed over them.
  void (*average)(const T* x, float* y, std::size_t rows, std::size_t channels);
  void (*average_backward)(const float* dy, T* dx, std::size_t rows, std::size_t channels,
                           bool adds);
  // y takes every stride-th place of x in both directions. The inverse sets dx to dy there and to
  // zero elsewhere, or adds dy there.
  void (*gather)(const Window& window, const T* x, T* y);
  void (*scatter)(const Window& window, const T* dy, T* dx, bool adds);
  void (*add)(const T* a, const T* b, T* y, std::size_t count);
  void (*relu)(const T* x, T* y, std::size_t count);
  // dx = y <= 0 ? 0 : dy, or dx += that
  void (*relu_backward)(const T* y, const T* dy, T* dx, std::size_t count, bool adds);
  // Pixels divided by 255.
  void (*cast_u8)(const std::uint8_t* x, T* y, std::size_t count);
  void (*cast_f32)(const float* x, T* y, std::size_t count);
  // The same, from NHWC to one plane of `places` per channel.
  void (*split_u8)(const std::uint8_t* x, T* y, std::size_t places, std::size_t channels);
  void (*split_f32)(const float* x, T* y, std::size_t places, std::size_t channels);
};

// The inner loops of a 1x1 convolution in bf16 with fp32 sums. The input needs no packing: in NHWC
// the channels of a place are adjacent, and so are the two values of a pair. A *panel* of weights
// has, for each pair of inputs, a 32-bit word for each of 32 outputs.

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

// The inner loops of a sum over pairs of places, in bf16 with fp32 sums:
//
//   c[i][j] += sum over k of left[2k][i] right[2k][j] + left[2k + 1][i] right[2k + 1][j]
//
// One instruction (vdpbf16ps) computes sixteen such pairs if the two values of a pair are adjacent,
// so both operands are packed first, also for widened products. A *panel* has, for each pair, 8
// columns of the left or 32 of the right operand, with a 32-bit word for each pair of values.

constexpr std::size_t kLeftPanel = 8, kRightPanel = 32;  // columns

struct PackWork {
  const Bf16* row;           // of the first place
  std::size_t step;          // distance between places, in elements
  std::size_t places;        // an odd last one is paired with zeros
  std::size_t columns;       // elements taken from each place; the last panel is zero-padded
  std::uint32_t* panels;     // the word of the first pair in the first panel
  std::size_t panel_stride;  // distance between panels, in words
};

struct TileWork {
  const std::uint32_t *left, *right;  // one panel each
  std::size_t pairs;
  float* c;
  std::size_t row_stride;            // elements
  std::size_t rows;                  // columns of the left panel to compute, 1 to 8
  bool adds;                         // accumulates into c; else sets it
  const std::byte* ahead = nullptr;  // memory to prefetch, which is packed later
  std::size_t ahead_lines = 0;       // of 64 bytes
};

struct ProductKernels {
  void (*pack_left)(const PackWork& work) = nullptr;
  void (*pack_right)(const PackWork& work) = nullptr;
  void (*tile)(const TileWork& work) = nullptr;
  // For the probe, if the products' rate is not that of fp32. Returns the number of operations.
  double (*multiply_add)(std::size_t rounds) = nullptr;
};

// Loops of networks of tokens. Rows are places of samples.

// y = (x - mean) scale gamma + beta; mean and scale of each row go to `sums`.
template <typename T>
struct LayerNormWork {
  const T* x;
  T* y;
  std::size_t rows, channels;
  const float *gamma, *beta;
  float* sums;
  float epsilon;
};
// Sets dx or adds to it; adds to dgamma and dbeta.
template <typename T>
struct LayerNormBackwardWork {
  const T *x, *dy;
  T* dx;
  std::size_t rows, channels;
  const float *gamma, *sums;
  float *dgamma, *dbeta;
  bool adds_dx;
};

constexpr std::size_t kAttentionRows = 24;  // queries at a time: no matrix of places x places

// One head of one sample. `width` is a multiple of 16. `scratch` holds attention_scratch() floats.
template <typename T>
struct AttentionWork {
  const T *q, *k, *v;  // rows of `stride` elements
  T* y;                // rows of `out_stride`
  float* sums;         // logarithms of sums of exponentials, `sums_stride` apart
  std::size_t places, width, stride, out_stride, sums_stride;
  float scale;
  float* scratch;
};
template <typename T>
struct AttentionBackwardWork {
  AttentionWork<T> forward;
  const T* dy;  // like y
  T *dq, *dk, *dv;
};
constexpr std::size_t attention_scratch(std::size_t places, std::size_t width) {
  return 2 * (width + kAttentionRows) * (places + 15) + 3 * (kAttentionRows + places) * width;
}

struct TokenLoss {
  double loss = 0;
  std::size_t before = 0;  // classes that rank above the label
  bool is_number = true;
};

template <typename T>
struct TokenKernels {
  void (*gelu)(const T* x, T* y, std::size_t count);
  void (*gelu_backward)(const T* x, const T* dy, T* dx, std::size_t count, bool adds);
  void (*embed)(const float* token, const float* position, T* y, std::size_t count);
  void (*add_row)(const T* x, float* sum, std::size_t count);
  void (*add_bias)(T* y, const float* bias, std::size_t rows, std::size_t columns);
  void (*convert)(const float* x, T* y, std::size_t count);
  void (*widen)(const T* x, float* y, std::size_t count);
  void (*layer_norm)(const LayerNormWork<T>& work);
  void (*layer_norm_backward)(const LayerNormBackwardWork<T>& work);
  void (*attention)(const AttentionWork<T>& work);
  void (*attention_backward)(const AttentionBackwardWork<T>& work);
};

// Random bits of one dropout layer in one step, with each row's position in the global order.
struct DropoutBits {
  PhiloxKey key;
  const std::uint32_t* positions;
  std::uint32_t epoch, layer;
  double rate;
};

// 3x3 convolution of a one-channel image (stride 1, no padding) + bias + ReLU + 2x2 max pooling.
// The number of filters is a multiple of 16. `chosen` is the position of the maximum (0 to 3), or
// 255 if ReLU gave zero.
struct StemShape {
  int height, width;  // of the image
  int filters;
};

// How products of bf16 are computed, with fp32 sums. `pairs`: an instruction multiplies two values
// at a time (vdpbf16ps). `widened`: values become fp32 in registers. `tiles`: by oneDNN, which uses
// matrix tiles (AMX). `none`: not.
enum class Bf16Products { none, pairs, widened, tiles };

struct Kernels {
  const char* isa;  // of the loops
  Bf16Products bf16_products;

  void (*cast)(const std::uint8_t* x, float* y, std::size_t count);

  // y += bias for each row, then ReLU, then dropout.
  void (*bias)(float* y, const float* bias, std::size_t rows, std::size_t columns);
  void (*bias_relu)(float* y, const float* bias, std::size_t rows, std::size_t columns);
  void (*bias_relu_dropout)(float* y, const float* bias, std::size_t rows, std::size_t columns,
                            const DropoutBits& bits, std::size_t first_row);
  void (*dropout)(const float* x, float* y, std::uint8_t* kept, std::size_t rows,
                  std::size_t columns, const DropoutBits& bits);

  void (*dropout_backward)(const float* dy, const std::uint8_t* kept, float* dx, float scale,
                           std::size_t count);

  // dy = y <= 0 ? 0 : dy * scale
  void (*relu_backward)(const float* y, float* dy, float scale, std::size_t count);
  // sums[j] = sum over rows of x[row][j], for columns [begin, end)
  void (*column_sums)(const float* x, float* sums, std::size_t rows, std::size_t columns,
                      std::size_t begin, std::size_t end);

  void (*stem_forward)(const StemShape& shape, const float* x, const float* w, const float* b,
                       float* y, std::uint8_t* chosen, std::size_t samples);
  // Sets dw (9 x filters) and db from these samples.
  void (*stem_backward)(const StemShape& shape, const float* x, const float* dy,
                        const std::uint8_t* chosen, float* dw, float* db, std::size_t samples);

  void (*update)(const UpdateRule& rule, float* w, const float* g, float* a, float* b,
                 std::size_t count);

  // Multiply-adds for the probe. Returns the number of operations.
  double (*multiply_add)(std::size_t rounds);

  NormKernels<float> norm_f32;
  NormKernels<Bf16> norm_bf16;
  PlaneKernels<float> plane_f32;
  PlaneKernels<Bf16> plane_bf16;
  TokenKernels<float> tokens_f32;
  TokenKernels<Bf16> tokens_bf16;
  // The loss of a row of logits. `gradient`: they become (softmax - [label]) x scale.
  TokenLoss (*token_loss)(float* logits, std::size_t classes, std::size_t label, float scale,
                          bool gradient);
  ProductKernels product;    // null if oneDNN computes products of bf16
  WinogradKernels winograd;  // of pairs
  WinogradFp32Kernels winograd_fp32;
  PointwiseKernels pointwise;

  template <typename T>
  const NormKernels<T>& norm() const {
    if constexpr (std::is_same_v<T, float>) {
      return norm_f32;
    } else {
      return norm_bf16;
    }
  }
  template <typename T>
  const TokenKernels<T>& tokens() const {
    if constexpr (std::is_same_v<T, float>) {
      return tokens_f32;
    } else {
      return tokens_bf16;
    }
  }
  template <typename T>
  const PlaneKernels<T>& plane() const {
    if constexpr (std::is_same_v<T, float>) {
      return plane_f32;
    } else {
      return plane_bf16;
    }
  }
};

// What decides which kernels are best.
struct CpuTraits {
  std::string vendor;  // "GenuineIntel"
  bool avx2 = false, avx512 = false;
  bool pairs = false;  // AVX-512's bf16 products
  bool tiles = false;  // oneDNN uses AMX
};

// The instruction sets that such an x86-64 CPU has, best first.
std::vector<std::string_view> instruction_sets(const CpuTraits& cpu);
std::vector<std::string_view> instruction_sets_here();

// The best kernels for this CPU, or those for `wanted` ("amx", "avx512bf16", "avx512", "avx2", on
// aarch64 "sve", "baseline"; empty: the best). Throws usage if the CPU or the build lacks it.
const Kernels& kernels_for(std::string_view wanted);

}  // namespace paceline::cpu
