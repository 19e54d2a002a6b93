// What is computed from the means of several rows, and how well it is known.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/statistics.h"
#include "analysis/study.h"

namespace paceline {

// Quantities of a row, run by run.
struct RowValues {
  std::vector<std::vector<double>> values;          // a run each; all of one length
  std::vector<std::pair<std::string, int>> rounds;  // a run each: session and round
  bool tainted = false;                             // no interval
};

RowValues values_of(const Row& row,
                    const std::function<std::vector<double>(const Run&)>& quantities);

// Log seconds, or log seconds per sample where rates are compared: what means and ratios are of.
RowValues log_costs(const Row& row, bool rates);

using RowMeans = std::vector<std::vector<double>>;  // a row each
using OfMeans = std::function<double(const RowMeans&)>;

// `what` of the rows' means. Where all rows share all rounds of the row that has fewest, and these
// are three or more, it is taken in each round, which drift of the machine does not touch, and the
// interval is that of the mean over rounds; else runs are independent, and the standard error is
// the jackknife's over each row, with the degrees of freedom of Welch and Satterthwaite. Efron and
// Stein, "The jackknife estimate of variance", Ann. Statist. 9, 1981. Of rows of one run, or
// tainted ones, nothing is known of the error.
Difference contrast(const std::vector<RowValues>& rows, const OfMeans& what);

// What is never decided from fewer than kFewestRuns: whether it lies above, or below.
bool is_above(const Difference& difference, double limit);
bool is_below(const Difference& difference, double limit);
bool is_judged(const Difference& difference);  // there are enough runs to tell

}  // namespace paceline
