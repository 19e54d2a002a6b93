// The inner loops of a 3x3 convolution of stride 1 by Winograd's minimal filtering F(2x2, 3x3), in
// bf16 with fp32 sums (Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, 2015):
//
//   y = A' [ (G g G') * (B' d B) ] A
//
// A *tile* is 2x2 output places y and their 4x4 input places d; g is the 3x3 weights. The bracket
// is an element-wise product of 4x4 *points*, each summed over channels: 16 matrix products, i.e. 4
// multiplications per output place instead of 9.
//
//       | 1  0 -1  0 |        | 1    0    0  |        | 1  1  1  0 |
//  B' = | 0  1  1  0 |    G = | 1/2  1/2 1/2 |   A' = | 0  1 -1 -1 |
//       | 0 -1  1  0 |        | 1/2 -1/2 1/2 |
//       | 0  1  0 -1 |        | 0    0    1  |
//
// The gradient of the weights is G' [ (B' d B) * (A dy A') ] G, summed over tiles: also 16
// products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/device/cpu/bf16.h"

namespace paceline::cpu {

constexpr std::size_t kPoints = 16;         // of a tile, row by row
constexpr std::size_t kPointRow = 4;        // points of a row
constexpr std::size_t kWinogradBlock = 32;  // channels and filters are multiples of this
constexpr std::size_t kWinogradRows = 8;    // tiles of one product

// B' d B of one tile. In each block of 32 channels, even channels are stored before odd ones.
struct WinogradInputWork {
  const Bf16* const* places;  // 16 places, row by row
  std::size_t channels;
  Bf16* points;
  std::size_t point_stride;  // elements
};

// G g G' for 32 inputs and 32 outputs, as right operands: for each pair of inputs, in the storage
// order of WinogradInputWork, one word per output.
struct WinogradWeightsWork {
  const float* w;  // canonical: row, column, channel, filter
  std::size_t channels, filters;
  std::size_t input, output;  // the first ones
  bool backward;              // inputs are filters, outputs are channels, and g is rotated
  std::uint32_t* points;
  std::size_t point_stride;  // words
};

// Sets sums[tile][output] for 8 tiles and 32 outputs.
struct WinogradProductWork {
  const Bf16* left;  // of the first tile
  std::size_t left_stride;
  const std::uint32_t* right;
  std::size_t pairs;
  float* sums;
};

// A' sums A + bias for one tile and 32 outputs.
struct WinogradOutputWork {
  const float* sums;
  std::size_t point_stride;
  const float* bias;     // may be null
  Bf16* const* places;   // 4 places; null beyond the edge
  bool streams = false;  // writes past the caches
};

// One row of points of two tiles, as operands of a sum over pairs of tiles: t = p a + q b for the
// columns of the two rows of places a and b that this row of points uses, then the row's points: B'
// t of four columns, or A t of two. A panel has 8 (input) or 32 (gradient) channels.
struct WinogradPairWork {
  const Bf16* const* a[2];  // of each tile
  const Bf16* const* b[2];
  float p, q;
  std::size_t channels;
  std::uint32_t* panels;  // the word of this pair in the first panel of the row's first point
  std::size_t panel_stride, point_stride;  // words
};

// G' sums G for one channel. Adds the parts of several threads in their order.
struct WinogradGradientWork {
  const float* sums;  // 16 points
  std::size_t point_stride, parts, part_stride;
  std::size_t filters;
  float* dw;  // 9 taps
  std::size_t tap_stride;
};

struct WinogradKernels {
  void (*input)(const WinogradInputWork& work) = nullptr;
  void (*weights)(const WinogradWeightsWork& work) = nullptr;
  void (*product)(const WinogradProductWork& work) = nullptr;
  void (*output)(const WinogradOutputWork& work) = nullptr;
  void (*input_pair)(const WinogradPairWork& work) = nullptr;
  void (*gradient_pair)(const WinogradPairWork& work) = nullptr;
  void (*gradient)(const WinogradGradientWork& work) = nullptr;
};

// The inner loops of a 3x3 convolution of stride 1 in fp32 by Winograd's F(4x4, 3x3) (Lavin, Gray:
// Fast Algorithms for Convolutional Neural Networks, 2015). As above, but a tile is
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

constexpr std::size_t kFp32Points = 36;   // of a tile, row by row
constexpr std::size_t kFp32PointRow = 6;  // points of a row
constexpr std::size_t kFp32TileSide = 4;  // output places
constexpr std::size_t kFp32TilePlaces = 16;
constexpr std::size_t kFp32Block = 16;  // channels of a vector

// B' d B of a tile's 36 input places, or A dy A' of its 16 output places.
template <typename T>
struct Fp32PointsWork {
  const T* const* places;    // row by row; null outside of the image: zeros
  std::size_t blocks;        // of 16 channels
  std::size_t place_stride;  // elements from one block of a place to the next
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
template <typename T>
struct Fp32OutputWork {
  const float* sums;
  std::size_t point_stride;
  const float* bias;  // may be null
  T* const* places;   // 16 places; null beyond the edge
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

// The transforms that read or write planes of T.
template <typename T>
struct Fp32PlaneKernels {
  void (*input)(const Fp32PointsWork<T>& work) = nullptr;
  void (*output_gradient)(const Fp32PointsWork<T>& work) = nullptr;
  void (*output)(const Fp32OutputWork<T>& work) = nullptr;
};

struct WinogradFp32Kernels {
  std::size_t rows = 0, columns = 0;  // of a product; 0: there are no kernels
  Fp32PlaneKernels<float> f32;
  Fp32PlaneKernels<Bf16> bf16;
  void (*weights)(const Fp32WeightsWork& work) = nullptr;
  void (*product)(const Fp32ProductWork& work) = nullptr;
  void (*gradient)(const Fp32GradientWork& work) = nullptr;

  template <typename T>
  const Fp32PlaneKernels<T>& planes() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
};

}  // namespace paceline::cpu
