#include "engine/input/decode/resize.h"

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"

namespace paceline {

namespace baseline {
extern const ResizeLoops kResizeLoops;
}
#if defined(__x86_64__)
namespace avx2 {
extern const ResizeLoops kResizeLoops;
}
#endif

namespace {

const ResizeLoops& loops_for(std::string_view isa) {
#if defined(__x86_64__)
  if ((isa.empty() || isa == "avx2") && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("bmi2")) {
    return avx2::kResizeLoops;
  }
#endif
  if (isa.empty() || isa == "baseline") return baseline::kResizeLoops;
  throw usage_error("this CPU does not have instruction set " + std::string(isa), "",
                    "choose baseline");
}

}  // namespace

Resizer::Resizer(std::string_view isa) : loops_(&loops_for(isa)) {}

void Resizer::Axis::set(int new_in, int new_out) {
  if (in == new_in && out == new_out) return;
  in = new_in;
  out = new_out;
  const auto count = static_cast<std::size_t>(out);
  low.resize(count);
  high.resize(count);
  weight.resize(count);
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (std::size_t o = 0; o < count; ++o) {
    const float at = (static_cast<float>(o) + 0.5F) * scale - 0.5F;
    const float below = std::floor(at);
    low[o] = std::clamp(static_cast<int>(below), 0, in - 1);
    high[o] = std::clamp(static_cast<int>(std::ceil(at)), 0, in - 1);
    weight[o] = at - below;
  }
}

// Row y of the input, resized along x. Two are held: an output row needs two, and the next one
// mostly the same or the one behind.
const float* Resizer::row(const Image& image, int y) {
  const auto place = static_cast<std::size_t>(y % 2);
  if (held_[place] != y) {
    const std::uint8_t* in = image.pixels.data() + static_cast<std::size_t>(y) * image.row_bytes();
    loops_->across(in, image.channels, across_.low.data(), across_.high.data(),
                   across_.weight.data(), across_.out, rows_[place].data());
    held_[place] = y;
  }
  return rows_[place].data();
}

template <typename T>
void Resizer::run(const Image& image, int height, int width, T* out) {
  across_.set(image.width, width);
  down_.set(image.height, height);
  const int count = width * image.channels;
  for (int p = 0; p < 2; ++p) {
    rows_[p].resize(static_cast<std::size_t>(count) + 4);
    held_[p] = -1;
  }
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y, out += count) {
    const float* top = row(image, down_.low[y]);
    const float* bottom = row(image, down_.high[y]);
    if constexpr (sizeof(T) == 1) {
      loops_->down_rounded(top, bottom, down_.weight[y], count, out);
    } else {
      loops_->down(top, bottom, down_.weight[y], count, out);
    }
  }
}

void Resizer::resize(const Image& image, int height, int width, float* out) {
  run(image, height, width, out);
}

void Resizer::resize(const Image& image, int height, int width, std::uint8_t* out) {
  run(image, height, width, out);
}

}  // namespace paceline
