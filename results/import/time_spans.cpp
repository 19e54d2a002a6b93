#include "results/import/time_spans.h"

#include <algorithm>
#include <cmath>

namespace paceline {

TimeSpans merged(TimeSpans all) {
  std::sort(all.begin(), all.end());
  TimeSpans result;
  for (const auto& [begin, end] : all) {
    if (!result.empty() && begin <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else if (begin < end) {
      result.emplace_back(begin, end);
    }
  }
  return result;
}

TimeSpans united(TimeSpans a, const TimeSpans& b) {
  a.insert(a.end(), b.begin(), b.end());
  return merged(std::move(a));
}

TimeSpans without(const TimeSpans& from, const TimeSpans& holes) {
  TimeSpans result;
  std::size_t first = 0;
  for (auto [begin, end] : from) {
    while (first < holes.size() && holes[first].second <= begin) ++first;
    for (std::size_t i = first; i < holes.size() && holes[i].first < end; ++i) {
      if (holes[i].first > begin) result.emplace_back(begin, holes[i].first);
      begin = std::max(begin, holes[i].second);
    }
    if (begin < end) result.emplace_back(begin, end);
  }
  return result;
}

TimeSpans common(const TimeSpans& a, const TimeSpans& b) {
  return without(a, without(a, b));
}

double length(const TimeSpans& set) {
  double sum = 0;
  for (const auto& [begin, end] : set) sum += end - begin;
  return sum;
}

bool covers(const TimeSpans& set, double time) {
  const auto next = std::upper_bound(set.begin(), set.end(), TimeSpan{time, HUGE_VAL});
  return next != set.begin() && time < std::prev(next)->second;
}

}  // namespace paceline
