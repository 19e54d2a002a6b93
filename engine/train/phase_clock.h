// Where the time of a step went, on one rank: the step is cut into phases that follow each other
// without gaps, so that they sum to it.
//
// A device that computes on the thread that queues is timed by the clock. One that computes beside
// it is timed by markers on its compute lane, which are read some steps later, when they are
// reached.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "engine/core/lane.h"
#include "engine/core/trace.h"
#include "engine/train/trace/lane_timeline.h"

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
  // Room for this many steps, so that noting one never allocates. `lane` outlives the clock.
  PhaseClock(std::size_t steps, Lane& lane);

  void begin_step();
  // The time since the last call belongs to `phase`.
  void end(Phase phase);
  void end_step();

  // Notes phases and steps, too, of which the next is the `step`th; null: no more.
  void trace(TraceRing* ring, std::size_t step);
  // The lane is drained: what its markers say is from now on told from this time of the clock.
  void anchor();

  // Waits for the lane and tells the time of all steps so far, before their markers are used anew.
  void settle();

  // Of all steps; settles.
  const std::vector<StepTimes>& steps();

 private:
  // A step whose markers may not be reached yet.
  struct Pending {
    Marker begin;
    std::vector<std::pair<Phase, Marker>> ends;
  };
  void note(const Pending& pending);
  std::size_t step_number() const { return first_traced_ + steps_.size(); }

  Lane& lane_;
  bool by_markers_;
  double start_ = 0, last_ = 0;
  StepTimes current_;
  std::deque<Pending> pending_;
  TraceRing* trace_ = nullptr;
  std::size_t first_traced_ = 0;  // the number of the first step
  LaneTimeline timeline_;
  std::vector<StepTimes> steps_;
};

}  // namespace paceline
