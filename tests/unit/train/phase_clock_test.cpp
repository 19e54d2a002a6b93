#include "engine/train/phase_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace paceline {
namespace {

TEST(PhaseClock, PhasesHoldTheirTimeAndSumToTheStep) {
  InlineLane lane;
  PhaseClock clock(3, lane);
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

// A lane that reaches its markers when told to, a second apart.
class SlowLane final : public Lane {
 public:
  void submit(HostTask) override {}
  Marker mark() override { return {this, marks_++}; }
  void after(Marker) override {}
  bool reached(Marker marker) const override { return marker.position < reached_; }
  void drain() override { reached_ = marks_; }
  bool is_inline() const override { return false; }
  void wait_for(Marker) const override {}
  bool keeps_time() const override { return true; }
  double seconds_between(Marker begin, Marker end) const override {
    EXPECT_LT(end.position, reached_) << "read before it was reached";
    EXPECT_GE(begin.position, again_) << "read after it was used again";
    return static_cast<double>(end.position - begin.position);
  }
  void reach(std::uint64_t markers) { reached_ = markers; }
  void use_again() { again_ = marks_; }  // all markers so far: their times are lost

 private:
  std::uint64_t marks_ = 0, reached_ = 0, again_ = 0;
};

TEST(PhaseClock, StepsOfALaneThatKeepsTimeAreReadWhenTheyAreReached) {
  SlowLane lane;
  PhaseClock clock(4, lane);
  for (int step = 0; step < 4; ++step) {
    clock.begin_step();
    clock.end(Phase::input);
    clock.end(Phase::forward);
    clock.end(Phase::update);
    clock.end(Phase::update);
    clock.end_step();
    if (step == 1) lane.reach(8);  // the first step and a part of the second
  }
  ASSERT_EQ(clock.steps().size(), 4U);
  for (const StepTimes& step : clock.steps()) {
    EXPECT_EQ(step.seconds[static_cast<std::size_t>(Phase::forward)], 1.0F);
    EXPECT_EQ(step.seconds[static_cast<std::size_t>(Phase::update)], 2.0F);
    EXPECT_EQ(step.total, 5.0F);
  }
}

TEST(PhaseClock, StepsByMarkersFollowEachOtherUnlessSomethingIsLeftOut) {
  SlowLane lane;
  PhaseClock clock(3, lane);
  for (const bool leaves_out : {false, true, false}) {
    clock.begin_step();
    clock.end(Phase::input);
    clock.end_step();
    if (leaves_out) clock.leave_out();
    lane.mark();  // a second between two steps
  }
  std::vector<float> inputs;
  for (const StepTimes& step : clock.steps()) {
    inputs.push_back(step.seconds[static_cast<std::size_t>(Phase::input)]);
    EXPECT_EQ(step.total, inputs.back() + 1);
  }
  EXPECT_EQ(inputs, (std::vector<float>{1, 2, 1}));
}

// As if the phases had never ended: their markers may never be reached.
TEST(PhaseClock, PhasesCanBeTakenBack) {
  SlowLane lane;
  PhaseClock clock(1, lane);
  clock.begin_step();
  clock.end(Phase::input);
  const std::size_t ended = clock.ended();
  clock.end(Phase::forward);
  clock.take_back(ended);
  clock.end(Phase::forward);
  clock.end_step();
  ASSERT_EQ(clock.steps().size(), 1U);
  EXPECT_EQ(clock.steps()[0].seconds[static_cast<std::size_t>(Phase::forward)], 2.0F);
  EXPECT_EQ(clock.steps()[0].total, 4.0F);
}

TEST(PhaseClock, SettledStepsNeedTheirMarkersNoLonger) {
  SlowLane lane;
  PhaseClock clock(2, lane);
  for (int step = 0; step < 2; ++step) {
    clock.begin_step();
    clock.end_step();
    clock.settle();
    lane.use_again();
  }
  EXPECT_EQ(clock.steps().size(), 2U);
}

}  // namespace
}  // namespace paceline
