// Converts the markers of a lane that measures time to the host's clock, marker by marker, starting
// at a moment when the lane was idle.
#pragma once

#include "engine/core/clock.h"
#include "engine/core/lane.h"

namespace paceline {

class LaneTimeline {
 public:
  explicit LaneTimeline(Lane& lane) : lane_(lane) {}

  // Call with the lane drained. Waits for its next marker, which takes a few microseconds.
  void anchor() {
    last_ = lane_.mark();
    lane_.wait_for(last_);
    at_ = now_seconds();
  }

  // Pass markers in order, soon after they were reached: a lane forgets old ones.
  double time_at(Marker marker) {
    at_ += lane_.seconds_between(last_, marker);
    last_ = marker;
    return at_;
  }

 private:
  Lane& lane_;
  Marker last_;
  double at_ = 0;
};

}  // namespace paceline
