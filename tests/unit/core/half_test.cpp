#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/core/dtype.h"

namespace paceline {
namespace {

using Narrow = void (*)(const float*, std::uint16_t*, std::size_t);
using Widen = void (*)(const std::uint16_t*, float*, std::size_t);

// Both the vectors and the tail are used: 19 copies of the value.
std::uint16_t narrowed(float value, Narrow narrow) {
  const std::vector<float> from(19, value);
  std::vector<std::uint16_t> to(19);
  narrow(from.data(), to.data(), to.size());
  EXPECT_EQ(to.front(), to.back()) << value;
  return to.back();
}

// The 16-bit neighbours of `value` by exhaustive definition: the nearest, ties to the even one.
std::uint16_t nearest(float value, std::uint16_t guess, Widen widen) {
  std::uint16_t best = guess;
  double error = std::numeric_limits<double>::infinity();
  for (int d = -1; d <= 1; ++d) {
    const auto candidate = static_cast<std::uint16_t>(guess + d);
    float wide = 0;
    widen(&candidate, &wide, 1);
    const double distance = std::abs(static_cast<double>(wide) - value);
    if (distance < error || (distance == error && candidate % 2 == 0)) best = candidate;
    error = std::min(error, distance);
  }
  return best;
}

void expect_nearest(Narrow narrow, Widen widen, float low, float high) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(low);
  for (; std::bit_cast<float>(bits) < high; bits += 7919) {
    const float value = std::bit_cast<float>(bits);
    const std::uint16_t got = narrowed(value, narrow);
    ASSERT_EQ(got, nearest(value, got, widen)) << value;
    ASSERT_EQ(narrowed(-value, narrow), got | 0x8000U) << value;
  }
}

void expect_round_trip(Narrow narrow, Widen widen) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const std::vector<std::uint16_t> half(17, static_cast<std::uint16_t>(bits));
    std::vector<float> wide(17);
    widen(half.data(), wide.data(), 17);
    if (std::isnan(wide[0])) {
      EXPECT_TRUE(std::isnan(wide[16]));
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[0]), std::bit_cast<std::uint32_t>(wide[16]));
    ASSERT_EQ(narrowed(wide[0], narrow), bits);
  }
}

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  expect_round_trip(to_bf16, from_bf16);
  expect_round_trip(to_f16, from_f16);
}

TEST(Half, RoundsToNearestAndTiesToEven) {
  expect_nearest(to_bf16, from_bf16, 1.0F, 2.02F);
  expect_nearest(to_f16, from_f16, 1.0F, 2.02F);
  expect_nearest(to_f16, from_f16, 0x1p-24F, 0x1p-23F);      // subnormal in binary16
  EXPECT_EQ(narrowed(1.0F + 0x1p-8F, to_bf16), 0x3f80);      // half way: down to even
  EXPECT_EQ(narrowed(1.0F + 3 * 0x1p-8F, to_bf16), 0x3f82);  // half way: up to even
  EXPECT_EQ(narrowed(1.0F + 0x1p-11F, to_f16), 0x3c00);
  EXPECT_EQ(narrowed(1.0F + 3 * 0x1p-11F, to_f16), 0x3c02);
}

TEST(Half, RangeEndsAsInIeee754) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(narrowed(65504.0F, to_f16), 0x7bff);
  EXPECT_EQ(narrowed(65519.9F, to_f16), 0x7bff);
  EXPECT_EQ(narrowed(65520.0F, to_f16), 0x7c00);
  EXPECT_EQ(narrowed(infinity, to_f16), 0x7c00);
  EXPECT_EQ(narrowed(-infinity, to_bf16), 0xff80);
  EXPECT_EQ(narrowed(std::numeric_limits<float>::max(), to_bf16), 0x7f80);
  EXPECT_EQ(narrowed(0x1p-26F, to_f16), 0);
  EXPECT_EQ(narrowed(-0.0F, to_bf16), 0x8000);
}

TEST(Half, NotANumberStaysOne) {
  // Its payload in the bits that are cut off must not leave an infinity.
  const float nan = std::bit_cast<float>(0x7f800001U);
  for (const auto& [narrow, widen] :
       {std::pair<Narrow, Widen>(to_bf16, from_bf16), std::pair<Narrow, Widen>(to_f16, from_f16)}) {
    const std::uint16_t half = narrowed(nan, narrow);
    float wide = 0;
    widen(&half, &wide, 1);
    EXPECT_TRUE(std::isnan(wide));
  }
}

}  // namespace
}  // namespace paceline
