#include "engine/train/trace/tracer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

#include "engine/core/clock.h"
#include "engine/train/gather.h"

namespace paceline {

namespace {

constexpr std::size_t kHostBytes = 64;
constexpr std::size_t kPiece = std::size_t{1} << 22;  // bytes of one broadcast

// What a rank says ahead of its spans.
struct Header {
  std::array<char, kHostBytes> host{};
  std::array<std::uint64_t, kTraceLanes> counts{};
  std::uint64_t dropped = 0;
  Overlap overlap;
};

// From `root` to rank 0; the others take part and forget it, a piece at a time.
std::vector<TraceSpan> sent(Communicator& communicator, int root, std::vector<TraceSpan> spans,
                            std::size_t count) {
  const bool keeps = communicator.rank() == 0;
  constexpr std::size_t kAtOnce = kPiece / sizeof(TraceSpan);
  if (communicator.rank() != root) spans.resize(keeps ? count : std::min(count, kAtOnce));
  for (std::size_t at = 0; at < count; at += kAtOnce) {
    const bool whole = keeps || communicator.rank() == root;
    communicator.broadcast(spans.data() + (whole ? at : 0),
                           std::min(kAtOnce, count - at) * sizeof(TraceSpan), root);
  }
  return spans;
}

std::map<std::string, std::string> collect_facts(const TraceOutcome& outcome) {
  const TraceFacts& facts = outcome.facts;
  return {{"arrows", "from the rank that came to a collective last to those that waited for it"},
          {"clock uncertainty", fmt::format("{:.1f} us", 1e6 * facts.clock_uncertainty_seconds)},
          {"communication hidden", fmt::format("{:.1f} %", 100 * facts.overlap)},
          {"operations", outcome.operations ? "noted" : "not noted: the device queues them"},
          {"overhead", fmt::format("{:.0f} ns a span, {:.3g} s on rank 0 in all",
                                   1e9 * outcome.span_seconds, facts.overhead_seconds)},
          {"spans dropped", fmt::format("{} (the oldest)", facts.dropped)}};
}

}  // namespace

double measured_span_seconds() {
  constexpr int kTries = 10, kSpells = 500;
  TraceRing ring(kSpells);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const double start = now_seconds();
    for (int j = 0; j < kSpells; ++j) {
      const double begin = now_seconds();
      ring.note("operation forward", begin, now_seconds());
    }
    least = std::min(least, (now_seconds() - start) / kSpells);
  }
  return least;
}

Tracer::Tracer(const TraceSetup& setup)
    : setup_(setup),
      rings_{TraceRing(setup.spans), TraceRing(setup.spans), TraceRing(setup.spans),
             TraceRing(setup.spans)} {}

void Tracer::begin(Communicator& communicator) {
  start_ = compare_clocks(communicator);
}

RankTrace Tracer::mine(int rank) const {
  RankTrace trace;
  trace.rank = rank;
  for (std::size_t lane = 0; lane < kTraceLanes; ++lane) {
    trace.lanes[lane] = rings_[lane].spans();
    trace.dropped += rings_[lane].dropped();
  }
  return trace;
}

TraceOutcome Tracer::finish(Communicator& communicator, bool operations) {
  TraceOutcome outcome;
  outcome.file = setup_.file.string();
  outcome.operations = operations;
  outcome.span_seconds = measured_span_seconds();
  for (const TraceRing& ring : rings_) {
    outcome.facts.overhead_seconds += static_cast<double>(ring.noted()) * outcome.span_seconds;
  }
  const std::vector<ClockReading> end = compare_clocks(communicator);
  std::vector<RankClock> clocks;
  for (std::size_t rank = 0; rank < end.size(); ++rank) {
    clocks.emplace_back(start_[rank], end[rank]);
    double& worst = outcome.facts.clock_uncertainty_seconds;
    worst = std::max(worst, clocks.back().uncertainty());
  }
  gather(communicator, clocks, outcome);
  return outcome;
}

void Tracer::gather(Communicator& communicator, const std::vector<RankClock>& clocks,
                    TraceOutcome& outcome) {
  const int rank = communicator.rank();
  RankTrace own = mine(rank);
  Header header;
  gethostname(header.host.data(), header.host.size() - 1);
  header.dropped = own.dropped;
  for (std::size_t lane = 0; lane < kTraceLanes; ++lane) {
    header.counts[lane] = own.lanes[lane].size();
  }
  header.overlap = compute_overlap(own.lanes[static_cast<std::size_t>(TraceLane::communication)],
                                   own.lanes[static_cast<std::size_t>(TraceLane::phases)]);
  const std::vector<Header> headers = paceline::gather(communicator, header);
  std::unique_ptr<TraceFile> file;
  const auto on_first = [&](const auto& write) {
    if (rank != 0 || !outcome.failure.empty()) return;
    try {
      write();
    } catch (const std::exception& error) {
      outcome.failure = error.what();
      file.reset();
    }
  };
  TraceFacts& facts = outcome.facts;
  Overlap overlap;
  on_first([&] { file = std::make_unique<TraceFile>(setup_.file, start_[0].at); });
  for (int r = 0; r < communicator.size(); ++r) {
    const Header& theirs = headers[static_cast<std::size_t>(r)];
    RankTrace trace;
    trace.rank = r;
    trace.host = theirs.host.data();
    for (std::size_t lane = 0; lane < kTraceLanes; ++lane) {
      std::vector<TraceSpan> spans;
      if (r == rank) spans = std::move(own.lanes[lane]);
      trace.lanes[lane] =
          r == 0 ? std::move(spans) : sent(communicator, r, std::move(spans), theirs.counts[lane]);
    }
    facts.dropped += static_cast<std::int64_t>(theirs.dropped);
    overlap.communication += theirs.overlap.communication;
    overlap.hidden += theirs.overlap.hidden;
    on_first([&] { file->add(trace, clocks[static_cast<std::size_t>(r)]); });
  }
  facts.communication_seconds = overlap.communication;
  facts.hidden_seconds = overlap.hidden;
  facts.overlap = overlap.share();
  on_first([&] { file->finish(collect_facts(outcome)); });
  if (!file) return;
  facts.spans = static_cast<std::int64_t>(file->spans());
  outcome.arrows = file->arrows();
}

}  // namespace paceline
