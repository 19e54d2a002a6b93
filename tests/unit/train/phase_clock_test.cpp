#include "engine/train/phase_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

namespace paceline {
namespace {

TEST(PhaseClock, PhasesHoldTheirTimeAndSumToTheStep) {
  PhaseClock clock(3);
  for (int step = 0; step < 3; ++step) {
    clock.begin_step();
    clock.end(Phase::input);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    clock.end(Phase::forward);
    for (int bucket = 0; bucket < 2; ++bucket) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      clock.end(Phase::communication);
      clock.end(Phase::update);
    }
    clock.end_step();
    std::this_thread::sleep_for(std::chrono::milliseconds(4));  // between steps: nobody's
  }
  ASSERT_EQ(clock.steps().size(), 3U);
  for (const StepTimes& step : clock.steps()) {
    const auto of = [&](Phase phase) { return step.seconds[static_cast<std::size_t>(phase)]; };
    EXPECT_GE(of(Phase::forward), 0.005F);
    EXPECT_GE(of(Phase::communication), 0.006F);
    EXPECT_LT(of(Phase::input), 0.005F);
    EXPECT_EQ(of(Phase::backward), 0.0F);
    const float sum = std::accumulate(step.seconds.begin(), step.seconds.end(), 0.0F);
    EXPECT_NEAR(sum, step.total, 1e-6F);
  }
}

}  // namespace
}  // namespace paceline
