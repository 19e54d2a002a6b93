// Bilinear resize with half-pixel centres and without antialiasing: tf.image.resize's default, bit
// for bit in fp32 (tensorflow/core/kernels/image/resize_bilinear_op.cc).
//
// Output pixel o lies at (o + 0.5) x in / out - 0.5 of the input. Along a row, the two neighbours a
// and b are interpolated as a + (b - a) w. Then two such rows are interpolated in the same way.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/input/decode/image.h"

namespace paceline {

struct ResizeLoops;

// Keeps tables and rows between images of the same size. One per thread.
class Resizer {
 public:
  // `isa` is "baseline" or "avx2", which give the same bits, or empty for the best of this machine.
  explicit Resizer(std::string_view isa = "");

  // Writes values from 0 to 255, height x width x image.channels.
  void resize(const Image& image, int height, int width, float* out);
  // The same, rounded to nearest, halves up.
  void resize(const Image& image, int height, int width, std::uint8_t* out);

 private:
  struct Axis {
    int in = 0, out = 0;
    std::vector<std::int32_t> low, high;
    std::vector<float> weight;  // of the upper neighbour

    void set(int new_in, int new_out);
  };

  template <typename T>
  void run(const Image& image, int height, int width, T* out);
  const float* row(const Image& image, int y);

  const ResizeLoops* loops_;
  Axis across_, down_;
  std::vector<float> rows_[2];  // already resized along x
  int held_[2] = {-1, -1};      // the input rows that they hold
};

// The loops of a resize, compiled once per instruction set.

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
