// What readers must know to interpret the table, one sentence each.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/row_facts.h"

namespace paceline {

// A wider side of an interval, over the value, is no margin: the table gives both ends.
inline constexpr double kWideMargin = 0.25;

// Interval and its kind, fit seconds, base with its absolute value, scaling type, warm-up,
// source of published rows; then the notes of the study.
std::vector<std::string> legend(const Study& study, const Comparison& comparison,
                                const std::vector<RowFacts>& facts,
                                const std::string& interval_kinds);

}  // namespace paceline
