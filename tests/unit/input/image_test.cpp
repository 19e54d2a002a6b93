#include "engine/input/decode/image.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

Image decoded(const std::string& bytes, int channels = 3) {
  ImageDecoder decoder;
  Image image;
  decoder.decode(bytes, channels, image, [] { return "here"; });
  return image;
}

double mean_difference(const Image& image, const std::vector<std::uint8_t>& pixels) {
  EXPECT_EQ(image.pixels.size(), pixels.size() + Image::kSlack);
  double sum = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) sum += std::abs(image.pixels[i] - pixels[i]);
  return sum / static_cast<double>(pixels.size());
}

void refuse_image(const std::string& bytes, const std::vector<std::string>& parts) {
  std::vector<std::string> all = parts;
  all.push_back("here");
  expect_error(ErrorKind::input, all, [&] { decoded(bytes); });
}

TEST(Image, JpegBaselineAndProgressive) {
  for (const bool progressive : {false, true}) {
    const Image image = decoded(make_jpeg(60, 91, 1, {.progressive = progressive}));
    EXPECT_EQ(image.height, 60);
    EXPECT_EQ(image.width, 91);
    EXPECT_LT(mean_difference(image, make_pixels(60, 91, 3, 1)), 4);
  }
}

TEST(Image, GrayBecomesRgbAndRgbGray) {
  const Image rgb = decoded(make_jpeg(20, 30, 2, {.components = 1}));
  const std::vector<std::uint8_t> gray = make_pixels(20, 30, 1, 2);
  for (std::size_t i = 0; i < gray.size(); ++i) {
    ASSERT_EQ(rgb.pixels[3 * i], rgb.pixels[3 * i + 2]);
    ASSERT_NEAR(rgb.pixels[3 * i], gray[i], 12);
  }
  EXPECT_LT(mean_difference(decoded(make_jpeg(20, 30, 2, {.components = 1}), 1), gray), 3);
  EXPECT_EQ(decoded(make_jpeg(20, 30, 2), 1).channels, 1);
  EXPECT_EQ(decoded(make_png(20, 30, 3, 2), 1).channels, 1);
}

// Adobe writes inks inverted: values c, m, y and k stand for the light that they let through.
TEST(Image, CmykBecomesRgb) {
  const Image image = decoded(make_jpeg(40, 50, 3, {.components = 4, .quality = 100}));
  const std::vector<std::uint8_t> inks = make_pixels(40, 50, 4, 3);
  for (std::size_t p = 0; p < 40 * 50; ++p) {
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_NEAR(image.pixels[3 * p + c], inks[4 * p + c] * inks[4 * p + 3] / 255, 40) << p;
    }
  }
  expect_error(ErrorKind::input, {"CMYK where gray is wanted"},
               [] { decoded(make_jpeg(40, 50, 3, {.components = 4}), 1); });
}

TEST(Image, PngOfEveryKindIsExact) {
  for (const int bits : {8, 16}) {
    const Image rgb = decoded(make_png(17, 23, 3, 1, bits));
    EXPECT_EQ(mean_difference(rgb, make_pixels(17, 23, 3, 1)), 0);
    EXPECT_EQ(mean_difference(decoded(make_png(17, 23, 1, 1, bits), 1), make_pixels(17, 23, 1, 1)),
              0);
  }
  const std::vector<std::uint8_t> with_alpha = make_pixels(9, 8, 4, 1);
  const Image image = decoded(make_png(9, 8, 4, 1));
  for (std::size_t p = 0; p < 72; ++p) EXPECT_EQ(image.pixels[3 * p + 1], with_alpha[4 * p + 1]);
  EXPECT_EQ(decoded(make_png(9, 8, 1, 1)).channels, 3);
}

TEST(Image, OneDecoderForImagesOfAllSizesAndForGoodOnesAfterBadOnes) {
  ImageDecoder decoder;
  Image image;
  const auto where = [] { return "here"; };
  for (const int side : {40, 7, 1, 64}) {
    const std::string jpeg = make_jpeg(side, side + 1, side);
    EXPECT_THROW(decoder.decode(jpeg.substr(0, jpeg.size() / 2), 3, image, where), Error);
    decoder.decode(jpeg, 3, image, where);
    EXPECT_EQ(image.width, side + 1);
    EXPECT_LT(mean_difference(image, make_pixels(side, side + 1, 3, side)), 12);
  }
}

TEST(Image, TruncatedAnywhere) {
  const std::string png = make_png(20, 20, 3, 1);
  for (std::size_t size = 8; size < png.size(); size += 7)
    refuse_image(png.substr(0, size), {"image"});
  for (const bool progressive : {false, true}) {
    const std::string jpeg = make_jpeg(60, 60, 1, {.progressive = progressive});
    // The last two bytes are the end marker alone.
    for (std::size_t size = 2; size < jpeg.size() - 2; size += 13) {
      refuse_image(jpeg.substr(0, size), {"image"});
    }
    refuse_image(jpeg.substr(0, jpeg.size() * 3 / 4), {"cut short"});
  }
}

TEST(Image, WhatIsNoImageIsNamed) {
  refuse_image("", {"is empty"});
  refuse_image("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
               {"git-lfs pointer"});
  refuse_image("<html>404</html>", {"web page"});
  refuse_image("GIF89a..", {"neither JPEG nor PNG", "47 49 46"});
  refuse_image("\xff\xd8", {"image"});
}

// Byte 4 of a frame header is the bits a colour.
TEST(Image, JpegOf12Bits) {
  std::string jpeg = make_jpeg(16, 16, 1);
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg[frame + 4] = 12;
  jpeg[frame + 1] = '\xc1';  // extended sequential, the kind that may have 12
  refuse_image(jpeg, {"12 bits a colour"});
}

TEST(Image, MorePixelsThanAnyImage) {
  std::string jpeg = make_jpeg(16, 16, 1);
  const std::size_t frame = jpeg.find("\xff\xc0");
  for (const std::size_t i : {5, 7}) jpeg[frame + i] = '\xf0';  // 61456 x 61456
  refuse_image(jpeg, {"pixels are more than"});
}

// Cameras and converters write between the segments; a photo's orientation is not ours to apply.
TEST(Image, JpegWithMoreThanItNeeds) {
  const std::string plain = make_jpeg(20, 30, 1);
  const std::string orientation(
      "\xff\xe1\x00\x22"
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0"
      "\x01\0\0\0\x06\0\0\0\0\0\0\0",
      36);
  for (const std::string& more : {std::string("\x00junk\x11", 6), orientation}) {
    const Image image = decoded(plain.substr(0, 2) + more + plain.substr(2));
    EXPECT_EQ(image.height, 20);
    EXPECT_EQ(image.width, 30);
    EXPECT_EQ(image.pixels, decoded(plain).pixels);
  }
}

// libjpeg-turbo decodes arithmetic coding only where it was built to.
TEST(Image, ArithmeticCodingDecodesOrIsNamed) {
  std::string jpeg = make_jpeg(16, 16, 1);
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg[frame + 1] = '\xc9';  // sequential, arithmetic coding
  try {
    EXPECT_EQ(decoded(jpeg).width, 16);
  } catch (const Error& error) {
    expect_parts(error.what(), {"arithmetic-coded"});
  }
}

}  // namespace
}  // namespace paceline
