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

#include "engine/core/file.h"
#include "engine/core/trace.h"
#include "engine/train/trace/rank_clock.h"

namespace paceline {

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

}  // namespace paceline
