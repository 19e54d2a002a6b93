#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/input/decode/image.h"

namespace paceline {

namespace {

bool set_once(bool& flag) {
  return !std::exchange(flag, true);
}

bool set_named(Augmentation& augmentation, std::string_view name) {
  if (name == "hflip") return set_once(augmentation.hflip);
  if (name == "vflip") return set_once(augmentation.vflip);
  constexpr std::string_view kCrop = "crop";
  if (!name.starts_with(kCrop) || augmentation.crop > 0) return false;
  const auto pixels = to_integer(name.substr(kCrop.size()));
  constexpr std::int64_t kMost = 1 << 15;
  if (!pixels || *pixels < 1 || *pixels > kMost) return false;
  augmentation.crop = static_cast<int>(*pixels);
  return true;
}

// Uniform on [0, count) but for at most count / 2^32.
int below(std::uint32_t bits, int count) {
  return static_cast<int>(std::uint64_t{bits} * static_cast<std::uint64_t>(count) >> 32);
}

// Where the pixels of an output row begin, and how far apart its neighbours lie, in the input.
struct Walk {
  std::ptrdiff_t first = 0, across = 0, down = 0;  // pixels
};

Walk plan_walk(const Change& change, int height, int width) {
  Walk walk{0, 1, width};
  if (change.vflip) {
    walk.first += (height - 1) * walk.down;
    walk.down = -walk.down;
  }
  if (change.hflip) {
    walk.first += (width - 1) * walk.across;
    walk.across = -walk.across;
  }
  return walk;
}

template <std::size_t kBytes>
void copy_pixels(const std::uint8_t* in, std::ptrdiff_t across, int count, std::uint8_t* out) {
  const std::ptrdiff_t step = across * static_cast<std::ptrdiff_t>(kBytes);
  for (int x = 0; x < count; ++x, in += step, out += kBytes) std::memcpy(out, in, kBytes);
}

using CopyPixels = void (*)(const std::uint8_t*, std::ptrdiff_t, int, std::uint8_t*);

CopyPixels choose_copier(int pixel_bytes) {
  switch (pixel_bytes) {
    case 1:
      return copy_pixels<1>;
    case 3:
      return copy_pixels<3>;
    case 4:
      return copy_pixels<4>;
    case 12:
      return copy_pixels<12>;
    default:
      throw internal_error(fmt::format("pixels of {} bytes", pixel_bytes), "augment", "");
  }
}

}  // namespace

Augmentation parse_augmentation(std::string_view text) {
  Augmentation augmentation;
  if (text == "none") return augmentation;
  for (const std::string& name : split(text, '+')) {
    if (set_named(augmentation, name)) continue;
    throw usage_error(fmt::format("augment cannot be \"{}\"", text), "",
                      "give none, or any of hflip, vflip and cropN, joined by +");
  }
  return augmentation;
}

std::string to_text(const Augmentation& augmentation) {
  std::vector<std::string> names;
  if (augmentation.hflip) names.emplace_back("hflip");
  if (augmentation.vflip) names.emplace_back("vflip");
  if (augmentation.crop > 0) names.push_back(fmt::format("crop{}", augmentation.crop));
  return names.empty() ? "none" : join(names, "+");
}

void check_augmentation(const Augmentation& augmentation, int height, int width) {
  if (augmentation.crop >= std::min(height, width)) {
    throw usage_error(
        fmt::format("crop{} would leave images of {} x {} black", augmentation.crop, height, width),
        "", "use a smaller crop");
  }
}

Change draw_change(const Augmentation& augmentation, PhiloxKey key, std::uint32_t pass,
                   std::uint32_t position) {
  const PhiloxCounter bits = philox({0, position, pass, 0}, key);
  Change change{.hflip = augmentation.hflip && (bits[0] & 1) != 0,
                .vflip = augmentation.vflip && (bits[0] & 2) != 0};
  const int places = 2 * augmentation.crop + 1;
  change.down = below(bits[1], places) - augmentation.crop;
  change.right = below(bits[2], places) - augmentation.crop;
  return change;
}

void apply(const Change& change, const std::uint8_t* in, int height, int width, int pixel_bytes,
           std::uint8_t* out) {
  const CopyPixels copy = choose_copier(pixel_bytes);
  const Walk walk = plan_walk(change, height, width);
  const auto pixel = static_cast<std::size_t>(pixel_bytes);
  const std::size_t row_bytes = static_cast<std::size_t>(width) * pixel;
  // A row has a part outside on its left, a part inside, and a part outside on its right.
  const int left = std::max(0, -change.right), right = std::max(0, change.right);
  const int inside = width - left - right;
  for (int y = 0; y < height; ++y, out += row_bytes) {
    const int from = y + change.down;
    if (from < 0 || from >= height) {
      std::memset(out, 0, row_bytes);
      continue;
    }
    std::memset(out, 0, static_cast<std::size_t>(left) * pixel);
    const std::ptrdiff_t first =
        walk.first + from * walk.down + (left + change.right) * walk.across;
    const std::uint8_t* source = in + first * pixel_bytes;
    std::uint8_t* to = out + static_cast<std::size_t>(left) * pixel;
    if (walk.across == 1) {
      std::memcpy(to, source, static_cast<std::size_t>(inside) * pixel);
    } else {
      copy(source, walk.across, inside, to);
    }
    std::memset(out + row_bytes - static_cast<std::size_t>(right) * pixel, 0,
                static_cast<std::size_t>(right) * pixel);
  }
}

}  // namespace paceline
