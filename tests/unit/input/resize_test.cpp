#include "engine/input/decode/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/unit/input/made.h"

namespace paceline {
namespace {

Image make_image(int height, int width, int channels, const std::vector<std::uint8_t>& pixels) {
  Image image;
  image.resize(height, width, channels);
  std::copy(pixels.begin(), pixels.end(), image.pixels.begin());
  return image;
}

std::vector<float> resized(const Image& image, int height, int width, const char* isa = "") {
  std::vector<float> out(static_cast<std::size_t>(height * width * image.channels));
  Resizer(isa).resize(image, height, width, out.data());
  return out;
}

// The formula of tensorflow/core/kernels/image/resize_bilinear_op.cc, pixel by pixel.
std::vector<float> by_formula(const Image& image, int height, int width) {
  struct Weight {
    int low, high;
    float weight;
  };
  const auto at = [](int o, int in, int out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    const float x = (static_cast<float>(o) + 0.5F) * scale - 0.5F;
    const float low = std::floor(x);
    return Weight{std::max(0, static_cast<int>(low)),
                  std::min(in - 1, static_cast<int>(std::ceil(x))), x - low};
  };
  const auto pixel = [&](int y, int x, int c) {
    return static_cast<float>(
        image.pixels[static_cast<std::size_t>((y * image.width + x) * image.channels + c)]);
  };
  std::vector<float> out;
  for (int y = 0; y < height; ++y) {
    const Weight v = at(y, image.height, height);
    for (int x = 0; x < width; ++x) {
      const Weight h = at(x, image.width, width);
      for (int c = 0; c < image.channels; ++c) {
        const auto across = [&](int row) {
          const float step = (pixel(row, h.high, c) - pixel(row, h.low, c)) * h.weight;
          return pixel(row, h.low, c) + step;
        };
        const float top = across(v.low), step = (across(v.high) - top) * v.weight;
        out.push_back(top + step);
      }
    }
  }
  return out;
}

// tf.image.resize([[1, 2], [3, 4]], [4, 4])
TEST(Resize, AsTensorFlowDoes) {
  const std::vector<float> out = resized(make_image(2, 2, 1, {1, 2, 3, 4}), 4, 4);
  EXPECT_EQ(out, (std::vector<float>{1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5,
                                     3, 3.25, 3.75, 4}));
}

// Half the size without antialiasing: pixels 1 and 2 of 4 are mixed half and half.
TEST(Resize, NoAntialias) {
  EXPECT_EQ(resized(make_image(1, 6, 1, {0, 10, 255, 30, 40, 50}), 1, 2),
            (std::vector<float>{10, 40}));
}

TEST(Resize, BitForBitTheFormulaOnEveryInstructionSet) {
  const int sizes[][4] = {{60, 91, 30, 30},     {7, 5, 30, 31},   {1, 1, 4, 4},
                          {600, 800, 300, 300}, {33, 33, 33, 33}, {2, 1000, 50, 3}};
  for (const int channels : {1, 3}) {
    for (const auto& [height, width, new_height, new_width] : sizes) {
      const Image image =
          make_image(height, width, channels, make_pixels(height, width, channels, 1));
      const std::vector<float> expected = by_formula(image, new_height, new_width);
      for (const char* isa : {"", "baseline"}) {
        const std::vector<float> out = resized(image, new_height, new_width, isa);
        EXPECT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0)
            << height << " x " << width << " x " << channels << " " << isa;
      }
    }
  }
}

TEST(Resize, BytesAreTheRoundedFloats) {
  const Image image = make_image(60, 91, 3, make_pixels(60, 91, 3, 4));
  const std::vector<float> exact = resized(image, 40, 50);
  for (const char* isa : {"", "baseline"}) {
    std::vector<std::uint8_t> bytes(exact.size());
    Resizer(isa).resize(image, 40, 50, bytes.data());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(bytes[i], static_cast<int>(exact[i] + 0.5F)) << i;
    }
  }
}

TEST(Resize, OneResizerForImagesOfAllSizes) {
  Resizer resizer;
  std::vector<float> out(30 * 30 * 3);
  for (const int side : {50, 20, 50, 31}) {
    const Image image = make_image(side, side + 3, 3, make_pixels(side, side + 3, 3, side));
    resizer.resize(image, 30, 30, out.data());
    EXPECT_EQ(out, by_formula(image, 30, 30)) << side;
  }
}

}  // namespace
}  // namespace paceline
