// A run's trace: rings that a replica's lanes note in, and one file of all ranks at the end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/trace.h"
#include "engine/train/trace/overlap.h"
#include "engine/train/trace/rank_clock.h"
#include "engine/train/trace/trace_file.h"

namespace paceline {

// What the run's caller decides, the same on every rank.
struct TraceSetup {
  std::filesystem::path file;    // counts on rank 0 alone
  std::size_t spans = 1U << 15;  // that a lane keeps, 64 bytes each: the newest
};

// What a trace says in numbers. Complete on rank 0.
struct TraceOutcome {
  std::string file;
  std::string failure;  // why the file could not be written; empty: it is there
  std::uint64_t spans = 0, arrows = 0, dropped = 0;
  std::vector<Overlap> overlap;  // of each rank
  double clock_uncertainty = 0;  // seconds, of the worst rank
  double overhead_seconds = 0;   // of noting, on rank 0: spans times the cost of one, measured
  double span_seconds = 0;       // that cost
  bool operations = false;       // whether the device notes them
  Overlap all() const;           // summed over ranks
};

class Tracer {
 public:
  // Allocates all rings.
  explicit Tracer(const TraceSetup& setup);

  TraceRing& ring(TraceLane lane) { return rings_[static_cast<std::size_t>(lane)]; }

  // Collective, before the first step: compares clocks.
  void begin(Communicator& communicator);

  // Collective, after the last one, with all lanes drained: compares clocks again, brings every
  // rank's spans to rank 0 and writes the file there. A file that cannot be written is told in
  // the outcome, so that the run's other results are not lost.
  TraceOutcome finish(Communicator& communicator, bool operations);

 private:
  RankTrace mine(int rank) const;
  void gather(Communicator& communicator, const std::vector<RankClock>& clocks,
              TraceOutcome& outcome);

  TraceSetup setup_;
  TraceRing rings_[kTraceLanes];
  std::vector<ClockReading> start_;
};

// What noting one span costs here, two readings of the clock included: the least of some tries.
double measured_span_seconds();

}  // namespace paceline
