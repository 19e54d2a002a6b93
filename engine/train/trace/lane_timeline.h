// When markers of a lane that keeps time were reached, on the host's clock: it counts on from a
// moment at which the lane was idle, marker by marker.
#pragma once

#include "engine/core/clock.h"
#include "engine/core/lane.h"

namespace paceline {

class LaneTimeline {
 public:
  explicit LaneTimeline(Lane& lane) : lane_(lane) {}

  // The lane is drained. Waits for its next marker, which takes some microseconds.
  void anchor() {
    last_ = lane_.mark();
    lane_.wait_for(last_);
    at_ = now_seconds();
  }

  // Markers come in their order, each soon after it was reached: a lane forgets old ones.
  double time_of(Marker marker) {
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
