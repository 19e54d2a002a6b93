// What may differ between runs that are compared, beside what is compared: a row each. Every verb
// asks each of them in three ways:
//
//  - Of runs of one row that differ in it: do they differ in their cost? One test for a covariate
//    that is a number, else one for each value against the others, all at kCovariateLevel together
//    (Bonferroni), so a table of independent runs has any such sentence with at most this
//    probability. Runs are compared within their session where they differ there, else sessions
//    are. What the runs of a round, or of a session, have in common is one unit, not several.
//  - Of rows: which share no value with the others, so that it cannot be distinguished from the
//  row?
//  - Of two sides: does one have none of the other's values?
//
// Those that must never differ are warned of wherever they do.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/evidence/run.h"
#include "analysis/statistics/statistics.h"

namespace paceline {

constexpr double kCovariateLevel = 0.02;

struct Covariate {
  const char* name = "";         // "GPU"
  const char* unlike = nullptr;  // "different data"; null: runs may differ in it, as in nodes
  std::string (*value)(const Run&) = nullptr;  // empty: not recorded
  const char* where = "with";                  // "on", before a value in sentences
  const char* plural = nullptr;                // "nodes"
  bool is_list = false;                        // a run may have several values, separated by ", "
  bool is_layout = false;                      // rows that differ in nothing else are compared
  bool has_effect = true;   // false: findings/run_order tells how sessions differ
  bool is_weighed = false;  // by a gate itself; programs have builds of their own
  // Of a covariate that is a number, instead of `value`. Less of it is slower.
  std::optional<double> (*number)(const Run&) = nullptr;
  const char* unit = "";
};

const std::vector<Covariate>& covariates();
std::set<std::string> covariate_values(const Covariate& covariate, const Run& run);

// How far sentences may go in naming causes of what rows differ in.
struct Causes {
  bool are_open = true;  // false: rows differ in a covariate, so no guesses beside what phases say
  double of_time = 0;  // up to this share of the cost it may be the time of day: no cause is named

  bool are_named(double lost) const { return of_time <= 0 || std::abs(lost) > of_time; }
};

// A row of a table, or a point of one side.
struct CovariateRow {
  std::string name;
  const std::vector<Run>* runs;
};

struct CovariateFindings {
  std::vector<std::string> sentences;
  Causes causes;
};

CovariateFindings find_covariates(const std::vector<CovariateRow>& rows);

// "runs on node07 take 1.20 [1.18, 1.22] times as long as those on node01 (3 of 24 runs)".
std::vector<std::string> covariate_effects(const std::vector<CovariateRow>& rows,
                                           bool of_gate = false);

// How the logarithm of the cost changes from one to the next where all rows ran again and again,
// and always in the same order. Empty: they did not.
std::optional<Difference> trend_of_cycles(const std::vector<CovariateRow>& rows);

// Which rows share no value with the most rows, or of equally many with the smaller ones.
void add_own_values(const std::vector<CovariateRow>& rows, CovariateFindings& found);
// Rows that ran one after the other, at another time than the rest, or in the same order again and
// again while times changed.
void add_own_times(const std::vector<CovariateRow>& rows, CovariateFindings& found);

// "the current side ran only on node7, no run of the baseline did: build and node cannot be
// distinguished", and how many values the other side has. Empty: the sides share one, or it is not
// recorded.
struct OwnOfSide {
  std::string text;
  std::size_t of_baseline = 0;
};
std::optional<OwnOfSide> find_own_of_side(const std::vector<Run>& before,
                                          const std::vector<Run>& now,
                                          const std::string& before_name,
                                          const std::string& now_name);

// "different data: mnist, hash 1 (3 runs), mnist, hash 2 (2 runs)", for each covariate that has
// several values among measured runs of one table.
std::vector<std::string> differing_covariates(const std::vector<const Run*>& runs);

// "different data: mnist, hash 1, and mnist, hash 2", for each covariate that two sides both record
// and of which their values differ.
std::vector<std::string> differing_covariates(const std::vector<Run>& before,
                                              const std::vector<Run>& now);

// "AMD EPYC (3 runs), Intel Xeon (1 run)"
std::string counts_text(const std::map<std::string, std::size_t>& counts);

}  // namespace paceline
