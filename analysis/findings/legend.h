// What readers must know to interpret the table, one sentence each.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "analysis/study/contrast.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

// Interval and its kind, fit seconds, base with its absolute value, scaling type, warm-up,
// source of published rows, the machine.
std::vector<std::string> legend(const Study& study, const Comparison& comparison,
                                const std::vector<RowFacts>& facts,
                                const std::string& interval_kinds);
// Bases that lack or were replaced, then the notes of the study.
std::vector<std::string> caveats(const Study& study, const Comparison& comparison);

// Texts of several values and of their intervals.

// Values and the hull of their intervals, which is only known if each has one.
struct Hull {
  Range values, intervals;
  bool is_known = true;
  void add(const Judged& judged);
  double largest() const { return std::max(std::abs(values.low), std::abs(values.high)); }
};

// "0.165 to 0.181".
std::string range_text(const Range& range, int digits, double scale = 1);
// Karp-Flatt fractions, "0.165 to 0.181 [0.15, 0.20]", with no more digits than intervals bear.
std::string fractions_text(const Hull& hull);
// "16 to 18 % [15, 20]".
std::string percent_text(const Hull& hull);

}  // namespace paceline
