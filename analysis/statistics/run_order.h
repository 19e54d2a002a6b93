// What the order of runs shows: trends, steps and slow rounds, a slow first round, runs that
// resemble their predecessors, sessions that differ.
//
// Runs are made in rounds: each round has one run of each row. What a round shares (the machine was
// slow then) moves all rows, and what a row shares with its own earlier runs moves it from round to
// round. A trend counts only if it stands out from both: its test over the rounds holds if rounds
// are independent, the one over the rows if rows are, and the weaker of the two decides.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

// Logarithms of times: one vector per row, one value per round. All rows have all rounds.
using RoundMatrix = std::vector<std::vector<double>>;

// Levels of the tests of one table. Together they are below 5 %, the probability of any such
// finding in a table of independent runs, even though heavy tails of what rows share double that of
// the first round, and raise that of slow rounds to 1 %.
constexpr double kTrendLevel = 0.006, kStepLevel = 0.004, kSlowRoundsLevel = 0.0002;
constexpr double kFirstRoundLevel = 0.005, kCorrelationLevel = 0.015;
constexpr double kSessionLevel = 0.005;  // of a session as a whole; as much for single rows

// The mean change of a logarithm from one round to the next. Needs 4 rounds in a session, and
// 3 rows: what one row does may be its own memory, or a lone outlier.
Difference trend_over_rounds(const std::vector<RoundMatrix>& sessions);

// How times change over the rounds.
struct RoundPattern {
  enum Shape { line, step, slow_rounds };

  Shape shape = line;
  std::size_t session = 0;          // of a step and of slow rounds
  std::vector<std::size_t> rounds;  // from 0: the later ones of a step, or the slow ones
  Difference size;                  // of a line: trend_over_rounds(); else of these rounds
  double criterion = 0;             // of the fit, with the choice of rounds: smaller is better
};

// A line, a step between two rounds with two or more on either side, or up to a third of the rounds
// that are slower than the others: the one that fits best, and those that fit about as well. Empty
// unless one differs from none, adjusted for the choice of its rounds. Needs what
// trend_over_rounds() needs. The criterion is Schwarz's, "Estimating the dimension of a model",
// Ann. Statist. 6, 1978.
std::vector<RoundPattern> find_patterns(const std::vector<RoundMatrix>& sessions);

// By how much the first round of each session exceeds the mean of the others. Needs 3 rounds
// and 3 rows.
Difference first_round_excess(const std::vector<RoundMatrix>& sessions);

// How much runs resemble those of the round before.
struct Resemblance {
  double correlation = 0;  // of neighbouring rounds
  double p = 1;            // one-sided, of independent rounds
};

// By von Neumann's ratio, the squares of successive differences over the variance, summed over
// rows. Its mean and variance are those over all orders of the rounds, which are equally likely if
// rounds are independent, whatever the noise is and whatever rows share. Needs 4 rounds in a
// session.
//   von Neumann, "Distribution of the ratio of the mean square successive difference to the
//   variance", Ann. Math. Statist. 12, 1941.
//   Wald and Wolfowitz, "An exact test for randomness in the non-parametric case based on serial
//   correlation", Ann. Math. Statist. 14, 1943.
Resemblance resemblance_of_rounds(const std::vector<RoundMatrix>& sessions);

// How a session differs from another, for rows that both have.
struct SessionShift {
  // Rows that differ in another way than the rest: index and difference.
  std::vector<std::pair<std::size_t, Difference>> apart;
  Difference rest;  // the mean over the other rows
  std::size_t rest_rows = 0;
};

// Rows are set apart one after the other, each tested against the mean of the rest at `level`,
// Bonferroni-adjusted over rows, until half of them, or 16, are apart. Both sessions need 2 rounds.
SessionShift session_shift(const RoundMatrix& first, const RoundMatrix& second, double level);

}  // namespace paceline
