// Functions of the means of several rows, with their uncertainty.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

// Quantities of a row for each unit. A unit is a run, or a session if sessions are pooled.
struct RowValues {
  std::vector<std::vector<double>> values;         // all of the same length
  std::vector<std::pair<std::string, int>> units;  // session and round; round is 1 if pooled
  bool tainted = false;                            // no interval
  bool has_sessions = false;                       // measured, and each run names its session
  Stopping stopping = Stopping::fixed;
  std::size_t needed = kFewestRuns;  // units for a decision
};

RowValues collect_values(const Row& row,
                         const std::function<std::vector<double>(const Run&)>& quantities);

// Log seconds, or log seconds per sample if rates are compared. Means and ratios are computed on
// these.
RowValues log_costs(const Row& row, bool rates);
// Logarithms of what every run of the row has.
RowValues log_values(const Row& row, const RunFact& fact);

// by_results if a run says that the number of runs depends on their results. The number of sessions
// does not.
Stopping find_stopping(const Row& row);

using RowMeans = std::vector<std::vector<double>>;  // one per row
using OfMeans = std::function<double(const RowMeans&)>;

// The same rows with the runs of those sessions that all of them have, so that how sessions differ
// is in no comparison. Without a common session all runs, tainted.
std::vector<RowValues> within_sessions(std::vector<RowValues> rows);

// The rows' means over these sessions, which have the same weights in all rows.
RowMeans comparable_means(const std::vector<RowValues>& rows);

// Within sessions, the rows' means in each round (or session, if pooled), if all rows have the same
// rounds equally often, and there are at least three rounds, or two that are all. Else empty: pairs
// must cover exactly the runs of the means, or ratios and means would contradict each other.
std::vector<RowMeans> paired_means(const std::vector<RowValues>& rows);

// `what` of the rows' means within sessions. If the rows can be paired, `what` is computed for each
// pair, which cancels drift of the machine; the interval is that of the mean over pairs. Else units
// are independent: the standard error is the jackknife's over each row and session, with
// Welch-Satterthwaite degrees of freedom. Efron and Stein, "The jackknife estimate of variance",
// Ann. Statist. 9, 1981. Of Stopping::by_results, each row has its share of the error rate instead.
// The error is unknown for tainted rows, rows of a single unit and rows without a common session.
Difference contrast(const std::vector<RowValues>& rows, const OfMeans& what);

// The mean of `above` over that of `below`, whose values are single logarithms, with its kind.
Ratio ratio_of_means(const RowValues& above, const RowValues& below);

// Whether the difference lies above or below the limit. Never true for fewer units than needed.
bool is_above(const Difference& difference, double limit);
bool is_below(const Difference& difference, double limit);
bool is_judged(const Difference& difference);  // enough runs for a decision

// Why rows cannot be judged. All false: they can.
struct WeakEvidence {
  bool few = false;        // fewer units than fewest_units()
  bool disturbed = false;  // only tainted runs
  bool pooled = false;     // the units are sessions
  bool apart = false;      // too few runs of sessions that both have
  // Enough runs for a t interval, but their number followed from their results, and the interval
  // that holds for every number is unbounded at this one.
  bool unbounded = false;

  void add(const Row& row);
  void add(const WeakEvidence& other);
  explicit operator bool() const { return few || disturbed || apart || unbounded; }
  bool operator==(const WeakEvidence&) const = default;
  // Describes the rows: "fewer than 3 runs", "only disturbed runs".
  std::string text() const;
};

WeakEvidence find_weak_evidence(const Row& base, const Row& row);

struct Known {
  double value = 0;
  Interval interval;
};

// A quantity of rows that sentences may speak of: known with its interval, or else with the reason
// why it cannot be judged. The interval is only at hand where there is one.
class Judged {
 public:
  Judged() = default;  // not judged, for no reason
  Judged(double value, const Interval& interval) : value_(value), of_it_(interval) {}
  Judged(double value, const WeakEvidence& why) : value_(value), of_it_(why) {}

  double value() const { return value_; }
  bool is_known() const { return std::holds_alternative<Interval>(of_it_); }
  // False if it is known.
  WeakEvidence doubt() const {
    return is_known() ? WeakEvidence{} : std::get<WeakEvidence>(of_it_);
  }
  // With its whole interval, so never if it is not known.
  bool is_above(double limit) const;
  bool is_below(double limit) const;

  // `if_known` of a Known, or else `if_not` of the value and its Doubt.
  template <typename IfKnown, typename IfNot>
  auto match(IfKnown if_known, IfNot if_not) const {
    if (const auto* interval = std::get_if<Interval>(&of_it_)) {
      return if_known(Known{value_, *interval});
    }
    return if_not(value_, std::get<WeakEvidence>(of_it_));
  }
  // Of a function that only grows, or only falls.
  template <typename Function>
  Judged transformed(Function function) const {
    return match(
        [&](const Known& known) {
          return Judged(function(known.value), paceline::transformed(known.interval, function));
        },
        [&](double value, const WeakEvidence& why) { return Judged(function(value), why); });
  }

 private:
  double value_ = 0;
  std::variant<WeakEvidence, Interval> of_it_;
};

// `doubt` is that of the rows.
Judged judged(const Difference& difference, const WeakEvidence& doubt);
Judged judged(const Estimate& estimate, const WeakEvidence& doubt);

}  // namespace paceline
