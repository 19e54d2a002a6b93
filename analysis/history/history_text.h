// The output of `history`, for people and for programs. All formats have the same shifts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/history/history.h"

namespace paceline {

// A section for each study: in plain text its findings, else also a row per series. JSON:
// {"schema": 1, "false_shift_probability", "series_tested", "history": [{"title", "shifts":
// [{"metric", "date", "after", "by", "touches", "worse", "points": [{"point", "before", "after",
// "change", "change_low", "change_high"}], "software", "changes": [{"name", "before", "after",
// "separation", "elsewhere", "at_shift"}]}], "series": [{"point", "metric", "gpus", "test",
// "sessions": [{"date", "session", "value", "runs", "busy", "outlying"}], "levels": [{"from", "to",
// "value", "low", "high"}], "noise", "noise_levels": [{"from", "to", "noise"}], "drift_per_day",
// "weekdays", "resemblance", "detectable", "possible_shifts": [{"date", "change", "change_low",
// "change_high", "plausible_resemblance"}], "largest_change"}], "warnings", "findings", "notes"}]}.
// Changes are shares of the level before, or differences of shares.
Document history_document(const History& history);

// The shifts and series of one study in JSON.
Json history_facts(const StudyHistory& study);

// One plot for each series that is the first to show a shift, at most six; without shifts, one of
// the series with the most sessions.
std::vector<Plot> history_plots(const StudyHistory& study, std::size_t first_number);

// Values and changes of a metric, as people read them.

// "+3.2", "+0.0081"; with its unit: "+3.2 %", "+1.2 points".
std::string change_number(double change, HistoryMetric metric);
std::string unit_of_change(HistoryMetric metric);
// With its interval. Both are on the scale of the series.
std::string change_text(const SeriesHistory& series, double size,
                        const std::optional<Interval>& interval);
// "1.24 s", "868.8 samples/s", "89.7 %"
std::string history_value_text(double value, HistoryMetric metric);

}  // namespace paceline
