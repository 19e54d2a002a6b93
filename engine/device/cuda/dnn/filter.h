// Decides which cuDNN engines may be used, from cuDNN's notes.
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
  bool varies = false;                // the order of sums differs from run to run
  bool compiles = false;              // compiles at run time, which takes up to seconds
  bool reorders_filter = false;       // needs weights in its own order
};

struct EngineRules {
  Math math = Math::fp32;
  bool deterministic = false;
  bool may_compile = false;
};

// fp32 admits no tensor cores and nothing narrower than fp32. 16-bit types and tf32 admit no
// Winograd or Fourier transform, whose additional rounding exceeds the tolerances.
Support admits(const EngineRules& rules, const EngineNotes& notes);

}  // namespace paceline::cuda
