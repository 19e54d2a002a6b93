#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include "engine/core/error.h"
#include "engine/input/prepare/make.h"

// jpeglib.h needs what stands above it.
#include <jpeglib.h>

namespace paceline {

namespace {

struct Colour {
  float red, green, blue;
};

Colour mix(Colour a, Colour b, float t) {
  return {a.red + (b.red - a.red) * t, a.green + (b.green - a.green) * t,
          a.blue + (b.blue - a.blue) * t};
}

// From 0 below `low` to 1 above `high`.
float ramp(float value, float low, float high) {
  return std::clamp((value - low) / (high - low), 0.0F, 1.0F);
}

constexpr Colour kSoil = {112, 84, 58}, kFoliage = {44, 74, 32}, kLeaf = {72, 128, 48},
                 kVein = {150, 182, 104}, kYellow = {206, 196, 72}, kBrown = {96, 62, 30},
                 kPale = {196, 210, 150};

enum Label { blight, streak, mite, mosaic, healthy };

class Leaf {
 public:
  Leaf(int label, int width, int height, RandomSequence& random)
      : label_(label),
        width_(width),
        height_(height),
        seed_(random.next()),
        patches_(random.next(), width, std::max(width / 5, 1)),
        spots_(random.next(), width, std::max(width / 24, 1)),
        grain_(random.next(), width, 7),
        fine_(random.next(), width, 3) {
    const auto between = [&](double low, double high) {
      return static_cast<float>(low + (high - low) * random.uniform());
    };
    const float side = static_cast<float>(std::min(width, height));
    radius_ = side * between(0.42, 0.6);
    centre_x_ = static_cast<float>(width) * between(0.4, 0.6);
    centre_y_ = static_cast<float>(height) * between(0.4, 0.6);
    turn_ = between(0, 2 * std::numbers::pi);
    lobes_ = static_cast<float>(5 + random.below(3));
    light_ = between(0.8, 1.15);
    foliage_ = between(0.1, 0.9);
    severity_ = between(0.7, 1.0);
  }

  Image paint() {
    Image image;
    image.resize(height_, width_, 3);
    std::uint8_t* at = image.pixels.data();
    for (int y = 0; y < height_; ++y) {
      const auto &patches = patches_.row(y), &spots = spots_.row(y), &grain = grain_.row(y),
                 &fine = fine_.row(y);
      for (int x = 0; x < width_; ++x) {
        const auto i = static_cast<std::size_t>(x);
        const Sample here = {patches[i], spots[i], grain[i], fine[i]};
        at = put(at, colour_at(x, y, here), x, y, here);
      }
    }
    return image;
  }

 private:
  struct Sample {
    float patch, spot, grain, fine;
  };

  Colour colour_at(int x, int y, const Sample& here) const {
    const Colour ground = mix(kSoil, kFoliage, ramp(here.patch + here.spot, 1 - foliage_, 1.6F));
    const float dx = static_cast<float>(x) - centre_x_, dy = static_cast<float>(y) - centre_y_;
    const float distance = std::sqrt(dx * dx + dy * dy) / radius_;
    if (distance > 1.05F) return ground;
    const float angle = (std::atan2(dy, dx) + turn_) * lobes_ / 2;
    const float axis = std::abs(std::cos(angle));  // 1 on the midrib of a lobe
    const float edge = 0.3F + 0.7F * axis - 0.06F * here.grain;
    const float inside = ramp(edge - distance, 0, 0.02F);
    const float off_rib = std::sqrt(std::max(1 - axis * axis, 0.0F)) * distance;
    return mix(ground, leaf_colour(off_rib, here), inside);
  }

  Colour leaf_colour(float off_rib, const Sample& here) const {
    const float rib = 1 - ramp(off_rib, 0.008F, 0.03F);
    const Colour green = mix(mix(kLeaf, kFoliage, here.grain * 0.5F), kVein, rib);
    switch (label_) {
      case blight: {
        const float halo = ramp(here.spot, 0.60F, 0.66F), core = ramp(here.spot, 0.68F, 0.72F);
        return mix(mix(green, kYellow, halo * severity_), kBrown, core * severity_);
      }
      case streak: {
        const float near_rib = 1 - ramp(off_rib + 0.12F * here.grain, 0.06F, 0.2F);
        return mix(green, kYellow, near_rib * severity_ * 0.9F);
      }
      case mite:
        return mix(green, kPale, ramp(here.fine, 0.58F, 0.68F) * severity_);
      case mosaic: {
        const float light = ramp(here.patch * 0.6F + here.spot * 0.4F, 0.44F, 0.5F);
        return mix(green, mix(kYellow, kPale, 0.5F), light * severity_ * 0.85F);
      }
      default:
        return green;
    }
  }

  // Light, shade, and the noise of a small sensor.
  std::uint8_t* put(std::uint8_t* at, Colour colour, int x, int y, const Sample& here) const {
    const auto bits =
        mixed_bits(seed_, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y));
    const float noise = (static_cast<float>(bits & 255) - 127.5F) * kSensorNoise;
    const float shade = light_ * (0.72F + 0.28F * here.patch + 0.22F * here.fine);
    for (const float value : {colour.red, colour.green, colour.blue}) {
      *at++ = static_cast<std::uint8_t>(std::clamp(value * shade + noise, 0.0F, 255.0F));
    }
    return at;
  }

  static constexpr float kSensorNoise = 0.07F;

  int label_, width_, height_;
  std::uint32_t seed_;
  NoiseField patches_, spots_, grain_, fine_;
  float radius_, centre_x_, centre_y_, turn_, lobes_, light_, foliage_, severity_;
};

}  // namespace

Image paint_leaf(int label, int width, int height, RandomSequence& random) {
  return Leaf(label, width, height, random).paint();
}

Image paint_texture(int label, RandomSequence& random) {
  constexpr int kSide = 32;
  const std::uint32_t seed = random.next();
  NoiseField field(random.next(), kSide, 8);
  // Five directions of stripes in two widths; light and phase are of no class.
  const double direction = std::numbers::pi * (label % 5) / 5;
  const double step = label < 5 ? 0.5 : 1.0;
  const double phase = 2 * std::numbers::pi * random.uniform(), light = 90 + 60 * random.uniform();
  const double cosine = std::cos(direction) * step, sine = std::sin(direction) * step;
  Image image;
  image.resize(kSide, kSide, 3);
  std::uint8_t* at = image.pixels.data();
  for (int y = 0; y < kSide; ++y) {
    const auto& row = field.row(y);
    for (int x = 0; x < kSide; ++x) {
      const double stripe = 45 * std::sin(cosine * x + sine * y + phase);
      const auto bits =
          mixed_bits(seed, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y));
      for (int c = 0; c < 3; ++c) {
        const double noise = static_cast<double>(bits >> (8 * c) & 255) * 0.2 - 25;
        const double value = light + stripe + noise + 40 * row[static_cast<std::size_t>(x)];
        *at++ = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return image;
}

namespace {

float smooth(float t) {
  return t * t * (3 - 2 * t);
}

}  // namespace

// The finaliser of MurmurHash3 (Appleby, public domain) over a sum of products with odd constants.
std::uint32_t mixed_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t h = a * 0x9E3779B1U + b * 0x85EBCA77U + c * 0xC2B2AE3DU;
  h = (h ^ h >> 16) * 0x85EBCA6BU;
  h = (h ^ h >> 13) * 0xC2B2AE35U;
  return h ^ h >> 16;
}

NoiseField::NoiseField(std::uint32_t seed, int width, int cell)
    : seed_(seed),
      cell_(cell),
      lattice_(static_cast<std::size_t>(width / cell + 2)),
      row_(static_cast<std::size_t>(width)) {
  for (int x = 0; x < width; ++x) {
    left_.push_back(x / cell);
    towards_.push_back(smooth(static_cast<float>(x % cell) / static_cast<float>(cell)));
  }
}

const std::vector<float>& NoiseField::row(int y) {
  const auto above = static_cast<std::uint32_t>(y / cell_);
  const float t = smooth(static_cast<float>(y % cell_) / static_cast<float>(cell_));
  for (std::size_t i = 0; i < lattice_.size(); ++i) {
    const auto column = static_cast<std::uint32_t>(i);
    const float a = mixed_unit(seed_, column, above), b = mixed_unit(seed_, column, above + 1);
    lattice_[i] = a + (b - a) * t;
  }
  for (std::size_t x = 0; x < row_.size(); ++x) {
    const auto left = static_cast<std::size_t>(left_[x]);
    row_[x] = lattice_[left] + (lattice_[left + 1] - lattice_[left]) * towards_[x];
  }
  return row_;
}

namespace {

struct Encoder {
  jpeg_error_mgr errors{};
  jpeg_compress_struct jpeg{};
  std::jmp_buf leave{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  char message[JMSG_LENGTH_MAX] = "";

  ~Encoder() {
    jpeg_destroy_compress(&jpeg);
    std::free(bytes);
  }
};

// libjpeg's callback must not return; only frames without destructors are left.
[[noreturn]] void leave(j_common_ptr common) {
  auto* encoder = static_cast<Encoder*>(common->client_data);
  common->err->format_message(common, encoder->message);
  std::longjmp(encoder->leave, 1);
}

bool run(Encoder& encoder, const Image& image, int quality) {
  jpeg_compress_struct& jpeg = encoder.jpeg;
  jpeg.err = jpeg_std_error(&encoder.errors);
  encoder.errors.error_exit = leave;
  if (setjmp(encoder.leave) != 0) return false;
  jpeg_create_compress(&jpeg);
  jpeg.client_data = &encoder;
  jpeg_mem_dest(&jpeg, &encoder.bytes, &encoder.size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    // libjpeg reads rows through pointers that are not const.
    auto* row = const_cast<JSAMPLE*>(image.pixels.data() + jpeg.next_scanline * image.row_bytes());
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

}  // namespace

std::string encode_jpeg(const Image& image, int quality) {
  Encoder encoder;
  encoder.jpeg.client_data = &encoder;
  if (!run(encoder, image, quality)) {
    throw Error(ErrorKind::internal, std::string("libjpeg: ") + encoder.message);
  }
  return {reinterpret_cast<const char*>(encoder.bytes), encoder.size};
}

}  // namespace paceline
