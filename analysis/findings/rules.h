// The twelve rules of Hoefler and Belli, "Scientific benchmarking of parallel computing systems",
// SC15, checked against a study. What a table itself keeps (geometric means of times, never of
// ratios; a stated base; a stated clock) is checked where records can still break it.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/row_facts.h"

namespace paceline {

constexpr int kRules = 12;

struct BrokenRule {
  int rule = 0;      // 1 to 12
  std::string what;  // is wrong, with numbers
  std::string fix;   // an imperative
};

// By number; a rule may be broken in several ways.
std::vector<BrokenRule> broken_rules(const Study& study, const Comparison& comparison,
                                     const std::vector<RowFacts>& facts);

// "rule 5: 2 of 9 rows have one run, so no interval; run 3 repeats or more".
std::string sentence_of(const BrokenRule& broken);

// "Rules of Hoefler and Belli (SC15): 10 of 12 hold".
std::string summary_of(const std::vector<BrokenRule>& broken);

// p of the hypothesis that values come from a normal distribution: Shapiro and Francia's W', with
// the distribution of Royston, "A toolkit for testing for non-normality", The Statistician 42,
// 1993. For 5 to 5,000 values; 1 where all are equal.
double normality(std::vector<double> values);

}  // namespace paceline
