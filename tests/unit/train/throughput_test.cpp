#include <gtest/gtest.h>

#include "engine/train/outcome.h"

namespace paceline {
namespace {

// 100 steps of 8 samples and 10 ms on two ranks; the first ten took `warm` seconds each, and epochs
// `between` seconds beside their steps.
TrainingOutcome run_of_steps(float warm, double between, std::size_t steps = 100) {
  TrainingOutcome outcome;
  outcome.steps = steps;
  outcome.samples = 8 * steps;
  outcome.warmup_samples = 8 * kWarmupSteps;
  outcome.ranks.resize(2);
  double all = between;
  for (std::size_t s = 0; s < steps; ++s) {
    StepTimes times;
    times.total = s < kWarmupSteps ? warm : 0.01F;
    all += times.total;
    for (RankTimes& rank : outcome.ranks) rank.steps.push_back(times);
  }
  outcome.timing.epoch_seconds = {0.25 * all, 0.75 * all};
  outcome.timing.fit_seconds = all + 60;
  outcome.timing.compile_seconds = 60;
  return outcome;
}

TEST(Throughput, LeavesOutWarmUpAndTheChoiceOfAlgorithms) {
  EXPECT_EQ(count_warmup(run_of_steps(1, 0)), kWarmupSteps);
  EXPECT_NEAR(samples_per_second(run_of_steps(0.01F, 0)), 800, 0.01);
  EXPECT_NEAR(samples_per_second(run_of_steps(5, 0)), 800, 0.01);
}

TEST(Throughput, CountsWhatLiesBetweenSteps) {
  EXPECT_NEAR(samples_per_second(run_of_steps(5, 0.9)), 400, 0.01);
}

// A rank that came to a step late spent less in it: the warm-up that is taken off is the shortest.
TEST(Throughput, IsOfTheRankThatWasWarmFirst) {
  TrainingOutcome outcome = run_of_steps(5, 0);
  outcome.ranks[1].steps[0].total = 4.1F;
  EXPECT_NEAR(samples_per_second(outcome), 720 / 1.8, 0.01);
}

TEST(Throughput, OfAShortRunIsThatOfAllSteps) {
  const TrainingOutcome outcome = run_of_steps(0.03F, 0, 40);
  EXPECT_EQ(count_warmup(outcome), 0U);
  EXPECT_NEAR(samples_per_second(outcome), 320 / 0.6, 0.01);
}

TEST(Throughput, NeverCountsLessTimeThanItsStepsTook) {
  TrainingOutcome outcome = run_of_steps(5, 0);
  outcome.timing.epoch_seconds = {50};
  EXPECT_NEAR(samples_per_second(outcome), 800, 0.01);
}

}  // namespace
}  // namespace paceline
