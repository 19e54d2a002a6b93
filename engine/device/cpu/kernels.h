// Paceline's own loops, compiled once for each instruction set and selected at program start. They
// process the range that the caller gives, and never allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/core/random.h"
#include "engine/device/cpu/bf16.h"
#include "engine/device/cpu/norm_kernels.h"
#include "engine/device/cpu/plane_kernels.h"
#include "engine/device/cpu/pointwise_kernels.h"
#include "engine/device/cpu/product_kernels.h"
#include "engine/device/cpu/winograd_fp32_kernels.h"
#include "engine/device/cpu/winograd_kernels.h"
#include "engine/device/update.h"

namespace paceline::cpu {

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

struct Kernels {
  const char* isa;

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
  ProductKernels product;  // null if the instruction set has no bf16
  WinogradKernels winograd;
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
  const PlaneKernels<T>& plane() const {
    if constexpr (std::is_same_v<T, float>) {
      return plane_f32;
    } else {
      return plane_bf16;
    }
  }
};

// The best kernels for this CPU, or those for `wanted` ("avx512bf16", "avx512", "avx2", on aarch64
// "sve", "baseline"; empty: the best). Throws usage if the CPU or the build lacks it.
const Kernels& kernels_for(std::string_view wanted);
std::vector<std::string_view> instruction_sets_here();  // best first

}  // namespace paceline::cpu
