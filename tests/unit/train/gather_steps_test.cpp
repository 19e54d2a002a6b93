#include <gtest/gtest.h>

#include "engine/comm/backend.h"
#include "engine/train/gather.h"
#include "engine/train/outcome.h"
#include "tests/support/communicators.h"

namespace paceline {
namespace {

// One of three ranks; the steps of rank r take r seconds more than those of this one.
class OneOfThree final : public IdleCommunicator {
 public:
  explicit OneOfThree(int rank) : IdleCommunicator(3, rank) {}
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

TEST(Gather, FactsAreThoseOfEachRank) {
  on_replicas(3, [](Communicator& communicator) {
    RankFacts mine{.host = std::string(static_cast<std::size_t>(communicator.rank()), 'n')};
    mine.ready_batches = communicator.rank() + 1.0 / 3;
    if (communicator.rank() == 1) mine.phases = PhaseSeconds{.input = 0.1, .step = 2};
    const std::vector<RankFacts> all = gather(communicator, mine);
    ASSERT_EQ(all.size(), 3U);
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(all[r].host.size(), r);
      EXPECT_EQ(all[r].ready_batches, static_cast<double>(r) + 1.0 / 3) << "to the last bit";
      EXPECT_EQ(all[r].phases.has_value(), r == 1);
    }
    EXPECT_EQ(all[1].phases->input, 0.1);
    EXPECT_EQ(all[1].phases->step, 2);
  });
}

TEST(Gather, ListsMayBeOfUnlikeLengths) {
  on_replicas(3, [](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const auto all = gather(communicator, std::vector<std::size_t>(rank, rank));
    EXPECT_EQ(all, (std::vector<std::vector<std::size_t>>{{}, {1}, {2, 2}}));
    EXPECT_EQ(gather(communicator, rank), (std::vector<std::size_t>{0, 1, 2}));
  });
}

}  // namespace
}  // namespace paceline
