// The file that Perfetto (ui.perfetto.dev) and chrome://tracing open: a process a rank, a thread a
// lane, and arrows that link a collective's ranks (Chrome's "Trace Event Format", JSON object
// form).
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
  std::vector<TraceSpell> lanes[kTraceLanes];
  std::uint64_t dropped = 0;
};

// Written rank by rank, so that only one rank's spans are held at a time. It is there under its
// name when finish() returns, or not at all.
class TraceFile {
 public:
  // `zero`: rank 0's time at which the trace begins. Throws input if it cannot be written.
  TraceFile(std::filesystem::path file, double zero);

  // Times go onto rank 0's clock.
  void add(const RankTrace& trace, const RankClock& clock);

  // Arrows: of each collective that is known of two ranks and more, from the rank that came last,
  // for which the others waited, to each of these. `facts` of the run, shown by the viewer.
  void finish(const std::map<std::string, std::string>& facts);

  std::uint64_t spans() const { return spans_; }
  std::uint64_t arrows() const { return arrows_; }

 private:
  struct Visit {
    int rank;
    double begin, end;
  };
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
