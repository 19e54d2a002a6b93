// What is computed from the means of several rows, and how well it is known.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

// Quantities of a row, a unit each: a run, or where sessions are pooled the mean of a session.
struct RowValues {
  std::vector<std::vector<double>> values;         // all of one length
  std::vector<std::pair<std::string, int>> units;  // session and round; of a pooled row, round 1
  bool tainted = false;                            // no interval
};

RowValues values_of(const Row& row,
                    const std::function<std::vector<double>(const Run&)>& quantities);

// Log seconds, or log seconds per sample where rates are compared: what means and ratios are of.
RowValues log_costs(const Row& row, bool rates);

using RowMeans = std::vector<std::vector<double>>;  // a row each
using OfMeans = std::function<double(const RowMeans&)>;

// The rows' means of each round (of sessions, where these are pooled) if all rows have the same
// rounds, each as often, and these are three or more, or two that are all. Else empty: pairs must
// be of the very runs that the means are of, or ratios and means would tell unlike stories.
std::vector<RowMeans> paired_means(const std::vector<RowValues>& rows);

// `what` of the rows' means. Where the rows can be paired it is taken of each pair, which drift of
// the machine does not touch, and the interval is that of the mean over pairs; else units are
// independent, and the standard error is
// the jackknife's over each row, with the degrees of freedom of Welch and Satterthwaite. Efron and
// Stein, "The jackknife estimate of variance", Ann. Statist. 9, 1981. Of rows of one unit, or
// tainted ones, nothing is known of the error.
Difference contrast(const std::vector<RowValues>& rows, const OfMeans& what);

// What is never decided from fewer than kFewestRuns: whether it lies above, or below.
bool is_above(const Difference& difference, double limit);
bool is_below(const Difference& difference, double limit);
bool is_judged(const Difference& difference);  // there are enough runs to tell

// Why nothing can be told from rows; nothing of that: they can be judged.
struct Doubt {
  bool few = false;        // units: fewer than kFewestRuns
  bool disturbed = false;  // there are only tainted runs
  bool pooled = false;     // the units are sessions

  void add(const Row& row);
  explicit operator bool() const { return few || disturbed; }
  bool operator==(const Doubt&) const = default;
  // "fewer than 3 runs", "only disturbed runs": what rows have.
  std::string text() const;
};

Doubt doubt_of(const Row& base, const Row& row);

}  // namespace paceline
