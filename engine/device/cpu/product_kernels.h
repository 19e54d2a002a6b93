// The inner loops of a sum over pairs of places, in bf16 with fp32 sums:
//
//   c[i][j] += sum over k of left[2k][i] right[2k][j] + left[2k + 1][i] right[2k + 1][j]
//
// One instruction (vdpbf16ps) computes sixteen such pairs if the two values of a pair are adjacent,
// so both operands are packed first. A *panel* has, for each pair, 8 columns of the left or 32 of
// the right operand, with a 32-bit word for each pair of values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cpu/bf16.h"

namespace paceline::cpu {

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
  // Products of pairs for the probe. Returns the number of operations.
  double (*multiply_add)(std::size_t rounds) = nullptr;
};

}  // namespace paceline::cpu
