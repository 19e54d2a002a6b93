// Where the time of a step went, on one rank: the step is cut into phases that follow each other
// without gaps, so that they sum to it.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/core/clock.h"

namespace paceline {

// input: waiting for or making the batch; communication: the exposed part, the step waited for it;
// other: between steps.
enum class Phase { input, forward, backward, communication, update, other };
constexpr std::size_t kPhases = 6;
constexpr std::array<const char*, kPhases> kPhaseNames = {"input",         "forward", "backward",
                                                          "communication", "update",  "other"};

struct StepTimes {
  std::array<float, kPhases> seconds{};
  float total = 0;
};

class PhaseClock {
 public:
  // Room for this many steps, so that noting one never allocates.
  explicit PhaseClock(std::size_t steps) { steps_.reserve(steps); }

  void begin_step() {
    start_ = last_ = now_seconds();
    current_ = StepTimes{};
  }
  // The time since the last call belongs to `phase`.
  void end(Phase phase) {
    const double now = now_seconds();
    current_.seconds[static_cast<std::size_t>(phase)] += static_cast<float>(now - last_);
    last_ = now;
  }
  void end_step() {
    end(Phase::other);
    current_.total = static_cast<float>(last_ - start_);
    steps_.push_back(current_);
  }

  const std::vector<StepTimes>& steps() const { return steps_; }

 private:
  double start_ = 0, last_ = 0;
  StepTimes current_;
  std::vector<StepTimes> steps_;
};

}  // namespace paceline
