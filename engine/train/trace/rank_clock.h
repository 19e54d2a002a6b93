// Estimates the difference between ranks' clocks from barriers. No rank leaves a barrier before
// every rank has entered it, so each barrier bounds the difference of any two clocks:
//
// rank 0's clock:  entered a0, left b0      o: add to rank r's clock to get rank 0's
// rank r's clock:  entered ar, left br      a0 - br <= o <= b0 - ar
//
// Many barriers narrow the bounds. The difference is measured before and after the run, and
// interpolated linearly (clocks drift by some microseconds per second).
#pragma once

#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

// One rank's times of a barrier, in seconds of its own clock.
struct RoundTrip {
  double came = 0, left = 0;
};

struct ClockBounds {
  double low = 0, high = 0;  // seconds
  double middle() const { return (low + high) / 2; }
};

// The bounds from both sides' round trips, in the same order. Swaps contradictory bounds (low >
// high): they still indicate the error of the middle.
ClockBounds clock_bounds(const std::vector<RoundTrip>& first, const std::vector<RoundTrip>& other);

// A rank's clock relative to rank 0's, at one time.
struct ClockReading {
  double at = 0;
  ClockBounds bounds;
};

class RankClock {
 public:
  // A constant offset if it explains both readings, else a line through their midpoints.
  RankClock(const ClockReading& start, const ClockReading& end);

  // Converts a time of this rank to rank 0's clock.
  double on_first(double seconds) const { return seconds + offset_ + drift_ * (seconds - start_); }
  double offset() const { return offset_; }  // at the start
  double drift() const { return drift_; }    // seconds per second
  double uncertainty() const { return uncertainty_; }

 private:
  double start_, offset_, drift_ = 0, uncertainty_;
};

// Collective: a few dozen barriers. Returns one reading per rank; that of rank 0 is zero.
std::vector<ClockReading> compare_clocks(Communicator& communicator);

}  // namespace paceline
