// Level shifts in all series of a study, and what records state differently across each.
//
// A series of kFewestInSeries sessions or more is tested by itself (statistics/level_shifts.h). In
// a series of 4 or more, one shift is looked for: Student's t for its best split into two levels of
// at least two sessions, times the number of splits, with the variances of all such series of a
// metric moderated (gate/weigh.h), and divided by the effect that resemblance of
// neighbours may have, where there are 8 sessions or more. All series of the call share
// kFalseShifts: those tested by themselves get kFalseShifts over the number of series each
// (Bonferroni); the others are judged together by Benjamini and Hochberg's procedure, so that
// several shifts support each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/history/series.h"
#include "analysis/statistics/level_shifts.h"

namespace paceline {

// What records state differently before and after a shift. It may have come with the shift by
// chance: nothing here speaks of causes.

struct ChangedFact {
  std::string name;           // "library", "modules", "host n17"
  std::string before, after;  // the values, as far as they differ
  bool is_software = false;
  // How well the value tells before from after: the mean of the shares of sessions on both sides
  // that have a value which is more frequent on their side. 1: always, 0.5: not at all.
  double separation = 0;
  std::size_t elsewhere = 0;  // changes between sessions of one level
  bool at_shift = false;      // the sessions on both sides of the shift differ
};

struct Changes {
  std::vector<ChangedFact> facts;  // by separation, the best first
  bool knows_software = false;     // some session on each side states software
  bool knows_anything = false;
};

// Compares the sessions [begin, earliest) with [latest, end).
Changes changes_across(const HistorySeries& series, std::size_t begin, std::size_t earliest,
                       std::size_t latest, std::size_t end);

// "Software changed with it: library A -> B. ..." or what else is known.
std::vector<std::string> make_sentences(const Changes& changes);

// The probability that a call names any shift where nothing changed.
constexpr double kFalseShifts = 0.05;
constexpr std::size_t kFewestForSplit = 4;

enum class HistoryTest { permutation, split, none };

struct SeriesHistory {
  const HistorySeries* series = nullptr;
  HistoryTest test = HistoryTest::none;
  LevelShifts found;  // on the series' scale; without a test: one level
  // For a series without a shift and too short for permutations: the first session after the
  // largest change between neighbours.
  std::optional<std::size_t> largest_change;

  // A level as people read it, and the change from `before` to `after`, as a share if a factor.
  double value(double scaled) const;
  double change(double scaled) const;
};

// Shifts of one metric that may have come at the same time, in the same direction.
struct HistoryEvent {
  struct Member {
    std::size_t series = 0, shift = 0;  // indices into StudyHistory::series and its shifts
  };
  HistoryMetric metric = HistoryMetric::time;
  std::vector<Member> members;  // the most certain first
  std::size_t watched = 0;      // series of the metric that have levels before and after it
  std::string touches;          // "all 8 points", "3 of 8 points, all those of 8 GPUs or more"
  double first_day = 0, last_day = 0;  // between the last session before and the first after
  Changes changes;                     // of its first member
};

struct StudyHistory {
  HistoryStudy study;
  std::vector<SeriesHistory> series;  // one per series of the study
  std::vector<HistoryEvent> events;   // by date
};

bool is_worse(HistoryMetric metric, double size);

struct History {
  std::vector<StudyHistory> studies;
  std::size_t tested = 0;  // series in all

  // Whether a level shift for the worse was found.
  bool has_worse() const;
  double level() const { return kFalseShifts / static_cast<double>(tested > 0 ? tested : 1); }
};

History find_history(std::vector<HistoryStudy> studies);

// The output of `history`, for people and for programs. All formats have the same shifts.

// A section for each study: in plain text its findings, else also a row per series. JSON:
// {"schema": 1, "false_shift_probability", "series_tested", "history": [{"title", "shifts":
// [{"metric", "date", "after", "by", "touches", "worse", "points": [{"point", "before", "after",
// "change", "change_low", "change_high"}], "software", "changes": [{"name", "before", "after",
// "separation", "elsewhere", "at_shift"}]}], "series": [{"point", "metric", "gpus", "test",
// "sessions": [{"date", "session", "value", "runs", "busy", "outlying"}], "levels": [{"from", "to",
// "value", "low", "high"}], "noise", "noise_levels": [{"from", "to", "noise"}], "drift_per_day",
// "weekdays", "resemblance", "detectable", "possible_shifts": [{"date", "change", "change_low",
// "change_high", "plausible_resemblance"}], "undated_changes": [{"kind", "from", "to", "change"}],
// "largest_change"}], "warnings", "findings", "notes"}]}.
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
std::string history_value_text(double value, const HistorySeries& series);

}  // namespace paceline
