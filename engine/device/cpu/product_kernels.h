// The inner loops of a sum over pairs of places, in bf16 with fp32 sums:
//
//   c[i][j] += sum over k of left[2k][i] right[2k][j] + left[2k + 1][i] right[2k + 1][j]
//
// One instruction (vdpbf16ps) does sixteen such pairs, where the two values of a pair stand side by
// side; so both operands are packed first. A *panel* holds, pair after pair, 8 columns of the left
// or 32 of the right operand, a 32-bit word for each pair of values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cpu/bf16.h"

namespace paceline::cpu {

constexpr std::size_t kLeftPanel = 8, kRightPanel = 32;  // columns

struct PackWork {
  const Bf16* row;           // of the first place
  std::size_t step;          // elements from one place to the next
  std::size_t places;        // an odd last one is paired with zeros
  std::size_t columns;       // elements taken of each place; the last panel is filled with zeros
  std::uint32_t* panels;     // the word of the first pair in the first panel
  std::size_t panel_stride;  // words from one panel to the next
};

struct TileWork {
  const std::uint32_t *left, *right;  // one panel each
  std::size_t pairs;
  float* c;
  std::size_t row_stride;            // elements
  std::size_t rows;                  // 1 to 8 of the left panel's columns are wanted
  bool adds;                         // to c, or sets it
  const std::byte* ahead = nullptr;  // memory that is packed later, fetched meanwhile
  std::size_t ahead_lines = 0;       // of 64 bytes
};

struct ProductKernels {
  void (*pack_left)(const PackWork& work) = nullptr;
  void (*pack_right)(const PackWork& work) = nullptr;
  void (*tile)(const TileWork& work) = nullptr;
};

}  // namespace paceline::cpu
