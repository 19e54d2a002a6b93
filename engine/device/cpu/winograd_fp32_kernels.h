// The inner loops of a 3x3 convolution of stride 1 in fp32 by Winograd's F(4x4, 3x3) (Lavin, Gray:
// Fast Algorithms for Convolutional Neural Networks, 2015). As winograd_kernels.h, but a tile is
// 4x4 output places and their 6x6 input places: 36 matrix products, i.e. 2.25 multiplications per
// output place instead of 9. Its transforms round more than those of F(2x2, 3x3), which fp32
// allows.
//
//       | 4  0 -5  0  1  0 |        |  1/4    0     0  |        | 1  1  1  1  1  0 |
//       | 0 -4 -4  1  1  0 |        | -1/6  -1/6  -1/6 |   A' = | 0  1 -1  2 -2  0 |
//  B' = | 0  4 -4 -1  1  0 |    G = | -1/6   1/6  -1/6 |        | 0  1  1  4  4  0 |
//       | 0 -2 -1  2  1  0 |        | 1/24  1/12   1/6 |        | 0  1 -1  8 -8  1 |
//       | 0  2 -1 -2  1  0 |        | 1/24 -1/12   1/6 |
//       | 0  4  0 -5  0  1 |        |  0     0     1   |
#pragma once

#include <cstddef>

namespace paceline::cpu {

constexpr std::size_t kFp32Points = 36;   // of a tile, row by row
constexpr std::size_t kFp32PointRow = 6;  // points of a row
constexpr std::size_t kFp32TileSide = 4;  // output places
constexpr std::size_t kFp32TilePlaces = 16;
constexpr std::size_t kFp32Block = 16;  // channels of a vector

// B' d B of a tile's 36 input places, or A dy A' of its 16 output places.
struct Fp32PointsWork {
  const float* const* places;  // row by row; null outside of the image: zeros
  std::size_t blocks;          // of 16 channels
  std::size_t place_stride;    // elements from one block of a place to the next
  float* points;
  std::size_t point_stride, block_stride;  // elements
};

// G g G' for one input and 16 outputs.
struct Fp32WeightsWork {
  const float* w;  // canonical: row, column, channel, filter
  std::size_t channels, filters;
  std::size_t input, output;  // the first output
  bool backward;              // inputs are filters, outputs are channels, and g is rotated
  float* points;
  std::size_t point_stride;
};

// sums[i][j] = (or +=) sum over steps k of left[i][k] right[k][j], for `rows` rows and `columns`
// columns (WinogradFp32Kernels).
struct Fp32ProductWork {
  const float* left;
  std::size_t left_row, left_step;  // elements between rows and between steps
  const float* right;               // [step][16]
  std::size_t right_half;           // elements to the next 16 columns
  std::size_t steps;
  float* sums;
  std::size_t row_stride;
  bool adds;
};

// A' sums A + bias for a tile and `blocks` blocks of 16 outputs, which lie side by side in `sums`.
struct Fp32OutputWork {
  const float* sums;
  std::size_t point_stride;
  const float* bias;     // may be null
  float* const* places;  // 16 places; null beyond the edge
  std::size_t blocks;
  std::size_t place_stride;
  bool streams;  // writes past the caches
};

// G' sums G for one channel and all filters.
struct Fp32GradientWork {
  const float* sums;
  std::size_t point_stride, filters;
  float* dw;  // 9 taps
  std::size_t tap_stride;
};

struct WinogradFp32Kernels {
  std::size_t rows = 0, columns = 0;  // of a product; 0: there are no kernels
  void (*input)(const Fp32PointsWork& work) = nullptr;
  void (*output_gradient)(const Fp32PointsWork& work) = nullptr;
  void (*weights)(const Fp32WeightsWork& work) = nullptr;
  void (*product)(const Fp32ProductWork& work) = nullptr;
  void (*output)(const Fp32OutputWork& work) = nullptr;
  void (*gradient)(const Fp32GradientWork& work) = nullptr;
};

}  // namespace paceline::cpu
