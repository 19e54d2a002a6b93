#include "engine/train/trace/trace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/train/gather.h"
#include "engine/train/phase_clock.h"

namespace paceline {

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr const char* kLaneNames[kTraceLanes] = {"compute: phases", "compute: operations",
                                                 "communication", "input"};
constexpr int kPartsOfLane = 1000;  // thread numbers that a lane has for its parts

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

// Microseconds, exact to the nanosecond.
std::string microseconds(std::int64_t nanoseconds) {
  const char* sign = nanoseconds < 0 ? "-" : "";
  const auto size = std::abs(nanoseconds);
  return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
}

int thread_id(std::size_t lane, std::uint32_t part) {
  return static_cast<int>(lane) * kPartsOfLane + static_cast<int>(part);
}

std::string metadata(int rank, int thread, const char* what, const std::string& name, int order) {
  return fmt::format(
      R"({{"ph":"M","pid":{0},"tid":{1},"name":"{2}_name","args":{{"name":{3}}}}},)"
      "\n"
      R"({{"ph":"M","pid":{0},"tid":{1},"name":"{2}_sort_index","args":{{"sort_index":{4}}}}})",
      rank, thread, what, json_string(name), order);
}

std::string arguments(TraceLane lane, const TraceSpan& span) {
  switch (lane) {
    case TraceLane::phases:
    case TraceLane::input:
      return fmt::format(R"("step":{})", span.number);
    case TraceLane::communication:
      return fmt::format(R"("sequence":{},"bytes":{})", span.number, span.bytes);
    case TraceLane::operations:
      return "";
  }
  return "";
}

constexpr std::size_t kRoundTrips = 32;

using Interval = std::pair<double, double>;

bool is_computation(std::string_view phase) {
  for (const Phase busy : {Phase::forward, Phase::backward, Phase::update}) {
    if (phase == kPhaseNames[static_cast<std::size_t>(busy)]) return true;
  }
  return false;
}

double first_begin(const std::vector<TraceSpan>& spans) {
  return std::ranges::min(spans, {}, &TraceSpan::begin).begin;
}

// Of one rank they do not overlap each other, but for those of lanes that count twice.
std::vector<Interval> busy_intervals(const std::vector<TraceSpan>& phases) {
  std::vector<Interval> busy;
  for (const TraceSpan& span : phases) {
    if (is_computation(span.text())) busy.emplace_back(span.begin, span.end);
  }
  std::sort(busy.begin(), busy.end());
  return busy;
}

}  // namespace

TraceFile::TraceFile(std::filesystem::path file, double zero)
    : path_(std::move(file)),
      partial_(path_.string() + fmt::format(".{}.tmp", getpid())),
      file_(std::make_unique<NewFile>(partial_)),
      zero_(zero) {
  buffer_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
}

void TraceFile::write_event(const std::string& event) {
  if (!first_) buffer_ += ",\n";
  first_ = false;
  buffer_ += event;
  if (buffer_.size() < kBuffer) return;
  file_->write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

std::int64_t TraceFile::nanoseconds(double time) const {
  return std::llround(1e9 * (time - zero_));
}

void TraceFile::add(const RankTrace& trace, const RankClock& clock) {
  write_event(metadata(trace.rank, 0, "process",
                       fmt::format("rank {} on {}", trace.rank, trace.host), trace.rank));
  for (std::size_t lane = 0; lane < kTraceLanes; ++lane) {
    std::uint32_t parts = 0;
    for (const TraceSpan& span : trace.lanes[lane]) parts = std::max(parts, span.part + 1);
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::string name =
          parts == 1 ? kLaneNames[lane] : fmt::format("{} {}", kLaneNames[lane], part);
      const int thread = thread_id(lane, part);
      write_event(metadata(trace.rank, thread, "thread", name, thread));
    }
    for (const TraceSpan& span : trace.lanes[lane]) {
      const double begin = clock.on_first(span.begin), end = clock.on_first(span.end);
      // Rounded as points of time: spans that touch must not overlap, or viewers drop one.
      const std::int64_t from = nanoseconds(begin), to = nanoseconds(end);
      write_event(fmt::format(
          R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{{}}}}})", trace.rank,
          thread_id(lane, span.part), microseconds(from), microseconds(to - from),
          json_string(span.text()), arguments(static_cast<TraceLane>(lane), span)));
      ++spans_;
      if (static_cast<TraceLane>(lane) == TraceLane::communication) {
        collectives_[span.number].push_back({trace.rank, begin, end});
      }
    }
  }
}

// Draws arrows from the rank that came last to a collective to the ranks that waited for it.
void TraceFile::write_arrows(std::uint64_t sequence, const std::vector<Visit>& visits) {
  const auto last = std::ranges::max_element(visits, {}, &Visit::begin);
  const auto write = [&](char phase, const Visit& visit, int other, double at) {
    write_event(fmt::format(
        R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"id":"{}.{}","name":"all-reduce","cat":"collective"{}}})",
        phase, visit.rank, thread_id(static_cast<std::size_t>(TraceLane::communication), 0),
        microseconds(nanoseconds(at)), sequence, other, phase == 'f' ? R"(,"bp":"e")" : ""));
  };
  for (const Visit& visit : visits) {
    if (visit.rank == last->rank) continue;
    write('s', *last, visit.rank, last->begin);
    write('f', visit, visit.rank, std::clamp(last->begin, visit.begin, visit.end));
    ++arrows_;
  }
}

void TraceFile::finish(const std::map<std::string, std::string>& facts) {
  for (const auto& [sequence, visits] : collectives_) {
    if (visits.size() > 1) write_arrows(sequence, visits);
  }
  buffer_ += "\n],\"otherData\":{";
  for (auto it = facts.begin(); it != facts.end(); ++it) {
    buffer_ += fmt::format("{}\n{}:{}", it == facts.begin() ? "" : ",", json_string(it->first),
                           json_string(it->second));
  }
  buffer_ += "}}\n";
  file_->write(buffer_.data(), buffer_.size());
  file_->finish();
  if (!give_name(partial_, path_)) {
    throw input_error("the file exists already", path_.string(),
                      "the trace is in " + partial_.string());
  }
}

ClockBounds clock_bounds(const std::vector<RoundTrip>& first, const std::vector<RoundTrip>& other) {
  ClockBounds bounds{-std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < first.size(); ++i) {
    bounds.low = std::max(bounds.low, first[i].came - other[i].left);
    bounds.high = std::min(bounds.high, first[i].left - other[i].came);
  }
  if (bounds.low > bounds.high) std::swap(bounds.low, bounds.high);
  return bounds;
}

RankClock::RankClock(const ClockReading& start, const ClockReading& end) : start_(start.at) {
  const ClockBounds both{std::max(start.bounds.low, end.bounds.low),
                         std::min(start.bounds.high, end.bounds.high)};
  if (both.low <= both.high || end.at <= start.at) {
    const ClockBounds& bounds = both.low <= both.high ? both : start.bounds;
    offset_ = bounds.middle();
    uncertainty_ = (bounds.high - bounds.low) / 2;
    return;
  }
  offset_ = start.bounds.middle();
  drift_ = (end.bounds.middle() - offset_) / (end.at - start.at);
  uncertainty_ =
      std::max(start.bounds.high - start.bounds.low, end.bounds.high - end.bounds.low) / 2;
}

std::vector<ClockReading> compare_clocks(Communicator& communicator) {
  const auto size = static_cast<std::size_t>(communicator.size());
  std::vector<RoundTrip> mine(kRoundTrips);
  for (RoundTrip& trip : mine) {
    trip.came = now_seconds();
    communicator.barrier();
    trip.left = now_seconds();
  }
  const auto all = gather(communicator, mine);
  const std::vector<RoundTrip>& first = all[0];
  std::vector<ClockReading> readings(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    const std::vector<RoundTrip>& theirs = all[rank];
    readings[rank].at = theirs.back().left;
    if (rank > 0) readings[rank].bounds = clock_bounds(first, theirs);
  }
  return readings;
}

Overlap compute_overlap(const std::vector<TraceSpan>& communication,
                        const std::vector<TraceSpan>& phases) {
  Overlap overlap;
  if (communication.empty() || phases.empty()) return overlap;
  const double from = std::max(first_begin(communication), first_begin(phases));
  const std::vector<Interval> busy = busy_intervals(phases);
  std::vector<Interval> sums;
  for (const TraceSpan& span : communication) {
    if (span.begin >= from) sums.emplace_back(span.begin, span.end);
  }
  std::sort(sums.begin(), sums.end());
  std::size_t first = 0;  // earlier busy intervals end before all remaining sums begin
  for (const auto& [begin, end] : sums) {
    overlap.communication += end - begin;
    while (first < busy.size() && busy[first].second <= begin) ++first;
    for (std::size_t i = first; i < busy.size() && busy[i].first < end; ++i) {
      overlap.hidden +=
          std::max(0.0, std::min(end, busy[i].second) - std::max(begin, busy[i].first));
    }
  }
  return overlap;
}

}  // namespace paceline
