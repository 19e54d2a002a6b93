#include "results/import/intervals.h"

#include <algorithm>
#include <cmath>

namespace paceline {

Intervals merged(Intervals all) {
  std::sort(all.begin(), all.end());
  Intervals result;
  for (const auto& [begin, end] : all) {
    if (!result.empty() && begin <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else if (begin < end) {
      result.emplace_back(begin, end);
    }
  }
  return result;
}

Intervals united(Intervals a, const Intervals& b) {
  a.insert(a.end(), b.begin(), b.end());
  return merged(std::move(a));
}

Intervals without(const Intervals& from, const Intervals& holes) {
  Intervals result;
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

Intervals common(const Intervals& a, const Intervals& b) {
  return without(a, without(a, b));
}

double length(const Intervals& set) {
  double sum = 0;
  for (const auto& [begin, end] : set) sum += end - begin;
  return sum;
}

bool covers(const Intervals& set, double time) {
  const auto next = std::upper_bound(set.begin(), set.end(), Interval{time, HUGE_VAL});
  return next != set.begin() && time < std::prev(next)->second;
}

}  // namespace paceline
