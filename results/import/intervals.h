// Sets of moments, as intervals that neither touch nor overlap, in order.
#pragma once

#include <utility>
#include <vector>

namespace paceline {

using Interval = std::pair<double, double>;  // begin and end
using Intervals = std::vector<Interval>;

// The set of all moments of any intervals.
Intervals merged(Intervals all);

// Of sets.
Intervals united(Intervals a, const Intervals& b);
Intervals without(const Intervals& from, const Intervals& holes);
Intervals common(const Intervals& a, const Intervals& b);
double length(const Intervals& set);
bool covers(const Intervals& set, double time);

}  // namespace paceline
