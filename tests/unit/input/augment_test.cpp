#include <gtest/gtest.h>

#include <map>

#include "engine/input/decode/image.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes applied(const Change& change, const Bytes& in, int height, int width, int pixel_bytes = 1) {
  Bytes out(in.size(), 99);
  apply(change, in.data(), height, width, pixel_bytes, out.data());
  return out;
}

TEST(Augment, NamesInAnyOrderHaveOneSpelling) {
  EXPECT_EQ(to_text(parse_augmentation("crop4+vflip+hflip")), "hflip+vflip+crop4");
  EXPECT_EQ(to_text(parse_augmentation("vflip")), "vflip");
  EXPECT_EQ(to_text(parse_augmentation("none")), "none");
  EXPECT_FALSE(parse_augmentation("none").any());
  for (const char* bad : {"", "flip", "hflip+", "hflip+none", "vflip+vflip", "crop", "crop-1",
                          "crop4+crop4", "crop99999999999", "Hflip", "transpose"}) {
    expect_error(ErrorKind::usage, {"augment cannot be", "hflip, vflip and cropN"},
                 [&] { parse_augmentation(bad); });
  }
}

TEST(Augment, ImagesMustFit) {
  check_augmentation(parse_augmentation("hflip+vflip+crop3"), 4, 5);
  expect_error(ErrorKind::usage, {"crop4", "black"},
               [] { check_augmentation(parse_augmentation("crop4"), 4, 5); });
}

TEST(Augment, Flips) {
  const Bytes wide = {1, 2, 3,  //
                      4, 5, 6};
  EXPECT_EQ(applied({.hflip = true}, wide, 2, 3), (Bytes{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(applied({.vflip = true}, wide, 2, 3), (Bytes{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(applied({.hflip = true, .vflip = true}, wide, 2, 3), (Bytes{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(applied({}, wide, 2, 3), wide);
}

TEST(Augment, WhatIsShiftedInIsBlack) {
  const Bytes in = {1, 2, 3,  //
                    4, 5, 6,  //
                    7, 8, 9};
  EXPECT_EQ(applied({.down = 1, .right = 1}, in, 3, 3), (Bytes{5, 6, 0, 8, 9, 0, 0, 0, 0}));
  EXPECT_EQ(applied({.down = -1, .right = -2}, in, 3, 3), (Bytes{0, 0, 0, 0, 0, 1, 0, 0, 4}));
  EXPECT_EQ(applied({.down = 2, .right = -2}, in, 3, 3), (Bytes{0, 0, 7, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(applied({.hflip = true, .right = 1}, in, 3, 3), (Bytes{2, 1, 0, 5, 4, 0, 8, 7, 0}));
}

// Channels and the bytes of a value stay together.
TEST(Augment, PixelsOfEverySizeMoveAsAWhole) {
  const int height = 5, width = 5;
  const Augmentation all = parse_augmentation("hflip+vflip+crop2");
  const PhiloxKey key = philox_key(7, Stream::augment);
  for (const int pixel : {1, 3, 4, 12}) {
    for (std::uint32_t position = 0; position < 200; ++position) {
      const Change change = draw_change(all, key, 0, position);
      Bytes places(25), in;
      for (std::size_t i = 0; i < places.size(); ++i) {
        places[i] = static_cast<std::uint8_t>(i + 1);
        for (int b = 0; b < pixel; ++b) in.push_back(static_cast<std::uint8_t>(i * 10 + b + 1));
      }
      const Bytes moved = applied(change, places, height, width);
      const Bytes out = applied(change, in, height, width, pixel);
      for (std::size_t i = 0; i < moved.size(); ++i) {
        for (std::size_t b = 0; b < static_cast<std::size_t>(pixel); ++b) {
          const std::uint8_t expected =
              moved[i] == 0 ? 0
                            : static_cast<std::uint8_t>((std::size_t{moved[i]} - 1) * 10 + b + 1);
          ASSERT_EQ(out[i * static_cast<std::size_t>(pixel) + b], expected);
        }
      }
    }
  }
}

TEST(Augment, EveryChangeIsDrawnAsOftenAsTheOthers) {
  const Augmentation all = parse_augmentation("hflip+vflip+crop1");
  const PhiloxKey key = philox_key(1, Stream::augment);
  constexpr int kDraws = 36 * 400;
  std::map<std::vector<int>, int> counts;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const Change change = draw_change(all, key, i / 5000, i % 5000);
    ++counts[{change.hflip, change.vflip, change.down, change.right}];
  }
  EXPECT_EQ(counts.size(), 4U * 9U);
  double chi_squared = 0;
  for (const auto& [change, count] : counts) {
    chi_squared += (count - 400.0) * (count - 400.0) / 400.0;
  }
  EXPECT_LT(chi_squared, 35 + 4 * 8.4);  // mean and four standard deviations
  const Change plain = draw_change(parse_augmentation("vflip"), key, 0, 0);
  EXPECT_FALSE(plain.hflip || plain.down != 0 || plain.right != 0);
}

TEST(Augment, DrawsDependOnSeedPassAndPosition) {
  const Augmentation all = parse_augmentation("hflip+vflip+crop4");
  const auto bits = [&](std::uint64_t seed, std::uint32_t pass) {
    std::vector<std::vector<int>> drawn;
    for (std::uint32_t position = 0; position < 50; ++position) {
      const Change change = draw_change(all, philox_key(seed, Stream::augment), pass, position);
      drawn.push_back({change.hflip, change.vflip, change.down, change.right});
    }
    return drawn;
  };
  EXPECT_EQ(bits(1, 0), bits(1, 0));
  EXPECT_NE(bits(1, 0), bits(1, 1));
  EXPECT_NE(bits(1, 0), bits(2, 0));
  const auto one = bits(1, 0);
  EXPECT_GT(std::set(one.begin(), one.end()).size(), 20U);
}

}  // namespace
}  // namespace paceline
