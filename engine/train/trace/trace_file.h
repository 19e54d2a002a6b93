// Writes the file for Perfetto (ui.perfetto.dev) and chrome://tracing: a process per rank, a thread
// per lane, and arrows between the ranks of a collective (Chrome's "Trace Event Format", JSON
// object form).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/clock.h"
#include "engine/core/file.h"
#include "engine/core/lane.h"

namespace paceline {

// Estimates the difference between ranks' clocks from barriers. No rank leaves a barrier before
// every rank has entered it, so each barrier bounds the difference of any two clocks:
//
// rank 0's clock:  entered a0, left b0      o: add to rank r's clock to get rank 0's
// rank r's clock:  entered ar, left br      a0 - br <= o <= b0 - ar
//
// Many barriers narrow the bounds. The difference is measured before and after the run, and
// interpolated linearly (clocks drift by some microseconds per second).

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
  double uncertainty() const { return uncertainty_; }

 private:
  double start_, offset_, drift_ = 0, uncertainty_;
};

// Collective: a few dozen barriers. Returns one reading per rank; that of rank 0 is zero.
std::vector<ClockReading> compare_clocks(Communicator& communicator);

enum class TraceLane { phases, operations, communication, input };
constexpr std::size_t kTraceLanes = 4;

struct RankTrace {
  int rank = 0;
  std::string host;
  std::vector<TraceSpan> lanes[kTraceLanes];
  std::uint64_t dropped = 0;
};

// Written rank by rank, so only one rank's spans are in memory. The file appears complete when
// finish() returns, or not at all.
class TraceFile {
 public:
  // `zero`: start of the trace on rank 0's clock. Throws input if it cannot be written.
  TraceFile(std::filesystem::path file, double zero);

  // Converts times to rank 0's clock.
  void add(const RankTrace& trace, const RankClock& clock);

  // Adds arrows: for each collective recorded on two or more ranks, from the last rank to enter to
  // all others. The viewer shows `facts` of the run.
  void finish(const std::map<std::string, std::string>& facts);

  std::uint64_t spans() const { return spans_; }
  std::uint64_t arrows() const { return arrows_; }

 private:
  struct Visit {
    int rank;
    double begin, end;
  };
  std::int64_t nanoseconds(double time) const;  // since `zero`
  void write_event(const std::string& event);
  void write_arrows(std::uint64_t sequence, const std::vector<Visit>& visits);

  std::filesystem::path path_, partial_;
  std::unique_ptr<NewFile> file_;
  double zero_;
  std::map<std::uint64_t, std::vector<Visit>> collectives_;  // by sequence number
  std::string buffer_;
  std::uint64_t spans_ = 0, arrows_ = 0;
  bool first_ = true;
};

// Converts the markers of a lane that measures time to the host's clock, marker by marker, starting
// at a moment when the lane was idle.

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

// How much of the communication overlapped with computation.

struct Overlap {
  double communication = 0;  // seconds of all collectives
  double hidden = 0;         // the part during which this rank computed
  double share() const { return communication > 0 ? hidden / communication : 0; }
};

// For one rank, on its own clock. The phases forward, backward and update count as computing;
// waiting for communication or input does not. If rings dropped old spans, covers only the time
// that both still have. Both must be sorted by end.
Overlap compute_overlap(const std::vector<TraceSpan>& communication,
                        const std::vector<TraceSpan>& phases);

}  // namespace paceline
