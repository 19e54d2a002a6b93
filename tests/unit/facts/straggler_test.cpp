#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "engine/facts/step_times.h"
#include "engine/facts/timing.h"

namespace paceline {
namespace {

constexpr std::size_t kStraggled = 200;

// 10 ms of work a step and rank, give or take a fifth, and `more` beyond that; the others wait in
// communication.
std::vector<RankTimes> run(
    std::size_t size, std::size_t steps,
    const std::function<void(std::size_t rank, std::size_t step, StepTimes&)>& more =
        [](std::size_t, std::size_t, StepTimes&) {}) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> noise(0.8F, 1.2F);
  std::vector<RankTimes> ranks(size);
  for (std::size_t s = 0; s < steps; ++s) {
    float longest = 0;
    for (std::size_t r = 0; r < size; ++r) {
      StepTimes times;
      times.seconds = {0.001F * noise(random), 0.003F * noise(random),
                       0.005F * noise(random), 0,
                       0.001F * noise(random), 0};
      more(r, s, times);
      for (const float seconds : times.seconds) times.total += seconds;
      longest = std::max(longest, times.total);
      ranks[r].steps.push_back(times);
    }
    for (RankTimes& rank : ranks) {
      StepTimes& times = rank.steps.back();
      times.seconds[static_cast<std::size_t>(Phase::communication)] += longest - times.total;
      times.total = longest;
    }
  }
  return ranks;
}

void add(StepTimes& times, Phase phase, float seconds) {
  times.seconds[static_cast<std::size_t>(phase)] += seconds;
}

TEST(Straggler, IsNamedWithItsPhase) {
  const auto found = find_straggler(run(4, kStraggled,
                                        [](std::size_t rank, std::size_t, StepTimes& times) {
                                          if (rank == 2) add(times, Phase::input, 0.002F);
                                        }),
                                    10);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->phase, "input");
  EXPECT_NEAR(*found->excess_seconds_per_step, 0.002, 0.0002);
  EXPECT_NEAR(*found->share_of_step, 0.002 / 0.0125, 0.03);
}

TEST(Straggler, OfTwoRanksIsTheSlower) {
  const auto found = find_straggler(run(2, kStraggled,
                                        [](std::size_t rank, std::size_t, StepTimes& times) {
                                          if (rank == 1) add(times, Phase::backward, 0.001F);
                                        }),
                                    0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->phase, "backward");
}

TEST(Straggler, RanksThatAreAlikeHaveNone) {
  EXPECT_FALSE(find_straggler(run(8, kStraggled), 0));
  EXPECT_FALSE(find_straggler(run(2, kStraggled), 0));
}

TEST(Straggler, WaitingForOthersIsNoWork) {
  const auto slow_network = [](std::size_t rank, std::size_t, StepTimes& times) {
    if (rank == 1) add(times, Phase::communication, 0.01F);
    if (rank == 1) add(times, Phase::other, 0.01F);
  };
  EXPECT_FALSE(find_straggler(run(4, kStraggled, slow_network), 0));
}

TEST(Straggler, OnePauseIsNone) {
  const auto pause = [](std::size_t rank, std::size_t step, StepTimes& times) {
    if (rank == 3 && step == 100) add(times, Phase::forward, 2.0F);
  };
  EXPECT_FALSE(find_straggler(run(4, kStraggled, pause), 0));
}

TEST(Straggler, LittleIsNone) {
  const auto little = [](std::size_t rank, std::size_t, StepTimes& times) {
    if (rank == 0) add(times, Phase::update, 0.0001F);
  };
  EXPECT_FALSE(find_straggler(run(4, kStraggled, little), 0));
}

TEST(Straggler, WarmUpAndShortRunsReportNothing) {
  const auto slow = [](std::size_t rank, std::size_t, StepTimes& times) {
    if (rank == 0) add(times, Phase::input, 0.01F);
  };
  EXPECT_FALSE(find_straggler(run(2, kStragglerLeastSteps - 1, slow), 0));
  EXPECT_FALSE(find_straggler(run(2, kStragglerLeastSteps + 9, slow), 10));
  EXPECT_TRUE(find_straggler(run(2, kStragglerLeastSteps, slow), 0));
  EXPECT_FALSE(find_straggler(run(1, kStraggled, slow), 0));
  EXPECT_FALSE(find_straggler({}, 0));
}

}  // namespace
}  // namespace paceline
