#include "engine/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace paceline {
namespace {

// kat_vectors of Random123 for philox4x32-10.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomSequence, DependsOnEveryPartOfItsName) {
  const auto first = [](std::uint64_t seed, Stream stream, std::uint32_t index, std::uint32_t sub) {
    return RandomSequence(seed, stream, index, sub).next();
  };
  EXPECT_EQ(first(1, Stream::order, 0, 0), first(1, Stream::order, 0, 0));
  const std::set<std::uint32_t> values = {first(1, Stream::order, 0, 0),
                                          first(2, Stream::order, 0, 0),
                                          first(1 + (1ULL << 32), Stream::order, 0, 0),
                                          first(1, Stream::weights, 0, 0),
                                          first(1, Stream::order, 1, 0),
                                          first(1, Stream::order, 0, 1)};
  EXPECT_EQ(values.size(), 6U);
}

TEST(RandomSequence, BelowIsUniformAndNeverReachesTheBound) {
  RandomSequence random(3, Stream::order, 0);
  constexpr int kDraws = 70000;
  int counts[7] = {};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t value = random.below(7);
    ASSERT_LT(value, 7U);
    ++counts[value];
  }
  double chi_squared = 0;
  for (const int count : counts) chi_squared += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  EXPECT_LT(chi_squared, 22.5);  // 6 degrees of freedom, p = 0.001
  EXPECT_EQ(random.below(1), 0U);
}

TEST(RandomSequence, MomentsOfUniformAndNormal) {
  RandomSequence random(5, Stream::weights, 0);
  double uniform = 0, normal = 0, square = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform(), n = random.normal();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    uniform += u;
    normal += n;
    square += n * n;
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.004);
  EXPECT_NEAR(normal / kDraws, 0, 0.013);
  EXPECT_NEAR(square / kDraws, 1, 0.018);
}

}  // namespace
}  // namespace paceline
