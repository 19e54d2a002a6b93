// Divides the time of each step on one rank into phases. Phases are contiguous, so they sum to the
// step.
//
// If the device computes on the queuing thread, phases are timed by the clock. If it computes
// concurrently, they are timed by markers on its compute lane, which are read some steps later.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "engine/core/clock.h"
#include "engine/core/lane.h"
#include "engine/facts/step_times.h"
#include "engine/train/trace/trace_file.h"

namespace paceline {

class PhaseClock {
 public:
  // Allocates room for this many steps, so that recording never allocates. `lane` outlives the
  // clock.
  PhaseClock(std::size_t steps, Lane& lane);

  // A step by markers begins where the one before ended, unless something is left out between them.
  void begin_step();
  void leave_out() { follows_ = false; }  // what is queued until the next step begins
  // Assigns the time since the last call to `phase`.
  void end(Phase phase);
  void end_step();
  // How many phases of this step have ended; the later ones are taken back, if markers tell the
  // time.
  std::size_t ended() const { return by_markers_ ? pending_.back().ends.size() : 0; }
  void take_back(std::size_t ended) {
    if (by_markers_) pending_.back().ends.resize(ended);
  }

  // Records phases and steps in `ring` too; the next step is number `step`. null: stops.
  void trace(TraceRing* ring, std::size_t step);
  // Call with the lane drained. Times from markers are relative to this moment from now on.
  void anchor();

  // Waits for the lane and evaluates all pending steps, before their markers are reused.
  void settle();

  // All steps. Calls settle().
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
  bool follows_ = false;
  TraceRing* trace_ = nullptr;
  std::size_t first_traced_ = 0;  // number of the first traced step
  LaneTimeline timeline_;
  std::vector<StepTimes> steps_;
};

}  // namespace paceline
