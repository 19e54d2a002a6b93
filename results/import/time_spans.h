// Sets of moments, as intervals that neither touch nor overlap, in order.
#pragma once

#include <utility>
#include <vector>

namespace paceline {

using TimeSpan = std::pair<double, double>;  // begin and end
using TimeSpans = std::vector<TimeSpan>;

// The set of all moments of any intervals.
TimeSpans merged(TimeSpans all);

// Of sets.
TimeSpans united(TimeSpans a, const TimeSpans& b);
TimeSpans without(const TimeSpans& from, const TimeSpans& holes);
TimeSpans common(const TimeSpans& a, const TimeSpans& b);
double length(const TimeSpans& set);
bool covers(const TimeSpans& set, double time);

}  // namespace paceline
