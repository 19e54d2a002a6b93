// What the numbers of a table say, in sentences. Each is of a kind, and a kind is said only where
// its condition holds, which tests/unit/analysis/laws_test.cpp holds against data of known laws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/trend.h"

namespace paceline {

enum class FindingKind {
  runs_differ,      // the slowest run of a row took more than 1.25 times as long as the fastest
  speed_ups,        // the numbers of a series
  slower_than_one,  // see TrendKind, these and the next ones
  no_loss,
  above_ideal,
  steady,
  grows,
  falls,
  uneven,
  unclear,
  unjudged,
  causes_alike,    // which causes a steady fraction may have, that times cannot tell apart
  too_few_sizes,   // of several replicas, to see whether the loss grows
  speed_up_bound,  // what the speed-up cannot exceed if the fraction stays
  peak,            // how many replicas are fastest by a fit
  settings,        // of a study of one size: the fastest, or which cannot be told from it
  left_out,        // what a published table does not show
  control,         // how far a point differs from itself
};

std::string_view name_of(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::speed_ups;
  std::string text;
};

// Rows whose runs differ widely; then for each series (best: the fastest rows; matched: the range
// over CPUs) its numbers and what becomes of the loss as replicas are added; of a
// study of one size, which of its settings is the fastest; what a published table leaves out; how
// far the A/A control differs from itself.
std::vector<Finding> findings(const Study& study, const Comparison& comparison,
                              const std::vector<RowFacts>& facts);

// The row whose runs are the most unlike, with their times; empty where none differ widely.
std::vector<Finding> unlike_runs(const Study& study, const Comparison& comparison,
                                 const std::vector<RowFacts>& facts);

// "mpi: speed-up 1.69 / 2.26 for 2, 3 replicas, efficiency 85 / 75 %, Karp-Flatt 0.181 / 0.165":
// ranges where a size has several rows.
Finding series_finding(const ScalingSeries& series, const Comparison& comparison);

// What becomes of the loss, a sentence for all trends of a kind.
std::vector<Finding> trend_findings(const Study& study, const ScalingSeries& series,
                                    const std::vector<Trend>& trends);

// Empty where no series of the study is steady.
std::vector<Finding> causes_finding(const Study& study, const Comparison& comparison,
                                    const std::vector<Finding>& found);

}  // namespace paceline
