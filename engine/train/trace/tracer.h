// A run's trace: rings that a replica's lanes write to, and one file of all ranks at the end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/clock.h"
#include "engine/facts/timing.h"
#include "engine/train/trace/trace_file.h"

namespace paceline {

// The caller's settings, equal on all ranks.
struct TraceSetup {
  std::filesystem::path file;    // used on rank 0 only
  std::size_t spans = 1U << 15;  // per lane, 72 bytes each; keeps the newest
};

// Summary of a trace. Complete on rank 0.
struct TraceOutcome {
  TraceFacts facts;  // the overhead is spans times the measured cost of one
  std::string file;
  std::string failure;  // why the file could not be written; empty: success
  std::uint64_t arrows = 0;
  double span_seconds = 0;  // cost of one span
  bool operations = false;  // the device recorded operations
};

class Tracer {
 public:
  // Allocates all rings.
  explicit Tracer(const TraceSetup& setup);

  TraceRing& ring(TraceLane lane) { return rings_[static_cast<std::size_t>(lane)]; }

  // Collective, before the first step. Compares clocks.
  void begin(Communicator& communicator);

  // Collective, after the last step, with all lanes drained. Compares clocks again, gathers all
  // spans on rank 0 and writes the file there. Write errors are returned in the outcome, so that
  // the run's other results are kept.
  TraceOutcome finish(Communicator& communicator, bool operations);

 private:
  RankTrace mine(int rank) const;
  void gather(Communicator& communicator, const std::vector<RankClock>& clocks,
              TraceOutcome& outcome);

  TraceSetup setup_;
  TraceRing rings_[kTraceLanes];
  std::vector<ClockReading> start_;
};

// The cost of recording one span here, including two clock readings: the minimum of several tries.
double measured_span_seconds();

}  // namespace paceline
