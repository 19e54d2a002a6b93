// Values and changes of a metric, as people read them.
#pragma once

#include <optional>
#include <string>

#include "analysis/history/history.h"

namespace paceline {

// "+3.2", "+0.0081"; with its unit: "+3.2 %", "+1.2 points".
std::string change_number(double change, HistoryMetric metric);
std::string unit_of_change(HistoryMetric metric);
// With its interval. Both are on the scale of the series.
std::string change_text(const SeriesHistory& series, double size,
                        const std::optional<Interval>& interval);
// "1.24 s", "868.8 samples/s", "89.7 %"
std::string history_value_text(double value, HistoryMetric metric);

}  // namespace paceline
