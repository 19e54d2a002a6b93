#include "engine/train/trace/overlap.h"

#include <algorithm>
#include <utility>

#include "engine/train/phase_clock.h"

namespace paceline {

namespace {

using Interval = std::pair<double, double>;

bool computes(std::string_view phase) {
  for (const Phase busy : {Phase::forward, Phase::backward, Phase::update}) {
    if (phase == kPhaseNames[static_cast<std::size_t>(busy)]) return true;
  }
  return false;
}

double first_begin(const std::vector<TraceSpan>& spans) {
  double first = spans.front().begin;
  for (const TraceSpan& span : spans) first = std::min(first, span.begin);
  return first;
}

// Of one rank they do not overlap each other, but for those of lanes that count twice.
std::vector<Interval> busy_intervals(const std::vector<TraceSpan>& phases) {
  std::vector<Interval> busy;
  for (const TraceSpan& span : phases) {
    if (computes(span.text())) busy.emplace_back(span.begin, span.end);
  }
  std::sort(busy.begin(), busy.end());
  return busy;
}

}  // namespace

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
  std::size_t first = 0;  // busy ones before it end before any sum that is left
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
