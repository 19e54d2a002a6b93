#include <gtest/gtest.h>

#include <set>

#include "sweeps/inventory.h"

namespace paceline {
namespace {

using Pairs = std::vector<std::pair<std::size_t, int>>;

Pairs count_pairs(const std::vector<ScheduledRun>& runs) {
  Pairs pairs;
  for (const ScheduledRun& run : runs) pairs.emplace_back(run.point, run.repeat);
  return pairs;
}

// Each point's sides follow each other, in an order that is not always the same.
TEST(Schedule, SidesRunSideBySide) {
  constexpr std::size_t kPoints = 5, kSides = 2;
  constexpr int kRounds = 6;
  const auto runs = schedule_sides(kPoints, kSides, kRounds, 42);
  ASSERT_EQ(runs.size(), kPoints * kSides * kRounds);
  int first_first = 0;
  for (std::size_t i = 0; i < runs.size(); i += kSides) {
    EXPECT_EQ(runs[i].point, runs[i + 1].point);
    EXPECT_EQ(runs[i].repeat, runs[i + 1].repeat);
    EXPECT_NE(runs[i].side, runs[i + 1].side);
    first_first += runs[i].side == 0;
  }
  EXPECT_GT(first_first, 5);
  EXPECT_LT(first_first, 25);
}

TEST(Schedule, EveryRoundHoldsEachPointOnce) {
  const auto runs = schedule(7, 5, true, 42);
  ASSERT_EQ(runs.size(), 35u);
  for (int round = 0; round < 5; ++round) {
    std::set<std::size_t> seen;
    for (std::size_t i = 0; i < 7; ++i) {
      const ScheduledRun& run = runs[static_cast<std::size_t>(round) * 7 + i];
      EXPECT_EQ(run.repeat, round + 1);
      seen.insert(run.point);
    }
    EXPECT_EQ(seen.size(), 7u);
  }
}

TEST(Schedule, TheOrderIsOfTheSeedAndTheRound) {
  EXPECT_EQ(count_pairs(schedule(9, 3, true, 42)), count_pairs(schedule(9, 3, true, 42)));
  EXPECT_NE(count_pairs(schedule(9, 3, true, 42)), count_pairs(schedule(9, 3, true, 43)));
  const auto runs = schedule(20, 2, true, 42);
  std::vector<std::size_t> first, second;
  for (const ScheduledRun& run : runs) (run.repeat == 1 ? first : second).push_back(run.point);
  EXPECT_NE(first, second);
}

TEST(Schedule, MoreRepeatsKeepTheRoundsThereWere) {
  const Pairs three = count_pairs(schedule(6, 3, true, 1));
  Pairs five = count_pairs(schedule(6, 5, true, 1));
  five.resize(three.size());
  EXPECT_EQ(five, three);
}

TEST(Schedule, SequentialIsPointAfterPoint) {
  EXPECT_EQ(count_pairs(schedule(2, 3, false, 42)),
            (Pairs{{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2}, {1, 3}}));
}

TEST(Eta, NothingIsKnownBeforeTheFirstRun) {
  EXPECT_FALSE(Eta().remaining({0, 1}));
}

TEST(Eta, MedianOfTheSamePointElseOfAll) {
  Eta eta;
  for (const double seconds : {10.0, 100.0, 12.0}) eta.add(0, seconds);
  eta.add(1, 4);
  EXPECT_EQ(eta.remaining({}), 0);
  EXPECT_EQ(eta.remaining({0}), 12);
  EXPECT_EQ(eta.remaining({1, 1, 0}), 20);
  EXPECT_EQ(eta.remaining({2}), 11) << "of 4, 10, 12 and 100";
}

}  // namespace
}  // namespace paceline
