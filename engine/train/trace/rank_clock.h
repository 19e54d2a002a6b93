// How ranks' clocks differ, from what they can know: no rank leaves a barrier before every rank has
// come to it. So each barrier is a round trip that bounds the difference of any two clocks:
//
//   rank 0's clock:  came a0, left b0        o: what to add to rank r's clock for rank 0's
//   rank r's clock:  came ar, left br        a0 - br <= o <= b0 - ar
//
// Many barriers narrow it. Measured before and after the run, the difference is taken as linear in
// between (clocks drift by some microseconds a second).
#pragma once

#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

// One rank's side of a barrier, seconds of its own clock.
struct RoundTrip {
  double came = 0, left = 0;
};

struct ClockBounds {
  double low = 0, high = 0;  // seconds
  double middle() const { return (low + high) / 2; }
};

// From both sides' round trips, in the same order. Where they contradict each other (low > high)
// the bounds are swapped: they still say how wrong the middle may be.
ClockBounds clock_bounds(const std::vector<RoundTrip>& first, const std::vector<RoundTrip>& other);

// A rank's clock against rank 0's at one time of its own.
struct ClockReading {
  double at = 0;
  ClockBounds bounds;
};

class RankClock {
 public:
  // One offset where it explains both readings, else a line through their middles.
  RankClock(const ClockReading& start, const ClockReading& end);

  // A time of this rank as rank 0's clock has it.
  double on_first(double seconds) const { return seconds + offset_ + drift_ * (seconds - start_); }
  double offset() const { return offset_; }  // at the start
  double drift() const { return drift_; }    // seconds a second
  double uncertainty() const { return uncertainty_; }

 private:
  double start_, offset_, drift_ = 0, uncertainty_;
};

// Collective: some tens of barriers. Of every rank; the first is rank 0's, all zero.
std::vector<ClockReading> compare_clocks(Communicator& communicator);

}  // namespace paceline
