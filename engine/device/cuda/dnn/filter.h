// Which of cuDNN's engines may be used, by what cuDNN notes about them.
#pragma once

#include "engine/core/support.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

struct EngineNotes {
  bool tensor_cores = false;
  bool converts_inputs = false;  // to a narrower type
  bool narrow_sums = false;      // in less than fp32
  bool fourier = false;
  bool winograd = false;
  bool large_winograd_tiles = false;  // 6 x 6 and more: errors grow with the tile
  bool varies = false;                // sums in an order that differs from run to run
  bool compiles = false;              // at run time, which takes up to seconds
  bool reorders_filter = false;       // wants weights in an order of its own
};

struct EngineRules {
  Math math = Math::fp32;
  bool deterministic = false;
  bool may_compile = false;
};

// fp32 takes no tensor cores and nothing narrower than its name; 16-bit types and tf32 take no
// Winograd or Fourier transform, whose rounding on top of theirs is larger than the tolerances.
Support admits(const EngineRules& rules, const EngineNotes& notes);

}  // namespace paceline::cuda
