#include <gtest/gtest.h>

#include <cstring>

#include "engine/train/outcome.h"
#include "tests/support/communicators.h"

namespace paceline {
namespace {

// One of three ranks; the steps of rank r take r seconds more than those of this one.
class OneOfThree final : public IdleCommunicator {
 public:
  explicit OneOfThree(int rank) : IdleCommunicator(3), rank_(rank) {}
  int rank() const override { return rank_; }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    ++gathers;
    const std::size_t count = bytes / sizeof(StepTimes);
    auto* steps = static_cast<StepTimes*>(all);
    for (std::size_t r = 0; r < 3; ++r) {
      std::memcpy(steps + r * count, mine, bytes);
      for (std::size_t i = 0; i < count; ++i) steps[r * count + i].total += static_cast<float>(r);
    }
  }

  int gathers = 0;

 private:
  int rank_;
};

std::vector<StepTimes> ten_steps() {
  std::vector<StepTimes> steps(10);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].total = static_cast<float>(10 * i);
  return steps;
}

TEST(GatherSteps, InPiecesKeepsTheOrderOfEachRank) {
  OneOfThree world(0);
  std::vector<RankTimes> ranks(3);
  gather_steps(world, ten_steps(), ranks, 3 * 4 * sizeof(StepTimes));
  EXPECT_EQ(world.gathers, 3) << "of four, four and two steps";
  for (std::size_t r = 0; r < 3; ++r) {
    ASSERT_EQ(ranks[r].steps.size(), 10U);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(ranks[r].steps[i].total, static_cast<float>(10 * i + r));
    }
  }
}

TEST(GatherSteps, OnlyRankZeroKeepsThem) {
  OneOfThree world(2);
  std::vector<RankTimes> ranks(3);
  gather_steps(world, ten_steps(), ranks, 1);
  EXPECT_EQ(world.gathers, 10) << "a step at a time at least";
  for (const RankTimes& rank : ranks) EXPECT_TRUE(rank.steps.empty());
}

}  // namespace
}  // namespace paceline
