// The loops of a resize, compiled once per instruction set.
#pragma once

#include <cstdint>

namespace paceline {

struct ResizeLoops {
  const char* isa;
  // Resizes one row of `in` (3 or 1 channels per pixel; kSlack readable bytes after it) to `count`
  // pixels. `out` has room for one more pixel.
  void (*across)(const std::uint8_t* in, int channels, const std::int32_t* low,
                 const std::int32_t* high, const float* weight, int count, float* out);
  void (*down)(const float* top, const float* bottom, float weight, int count, float* out);
  void (*down_rounded)(const float* top, const float* bottom, float weight, int count,
                       std::uint8_t* out);
};

}  // namespace paceline
