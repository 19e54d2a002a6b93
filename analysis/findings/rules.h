// Checks a study against the twelve rules of Hoefler and Belli, "Scientific benchmarking of
// parallel computing systems", SC15. What the table itself guarantees (ratios of means, never means
// of ratios; a stated base and clock) is checked only where records can still break it. Rule 3 asks
// for arithmetic means of costs: hours and joules have them. Times and rates have geometric ones,
// as their noise is a factor, and a breach is where the arithmetic mean is another.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/row_facts.h"

namespace paceline {

constexpr int kRules = 12;

struct BrokenRule {
  int rule = 0;      // 1 to 12
  std::string what;  // the violation, with numbers
  std::string fix;   // an imperative
};

// Sorted by rule. One rule may be violated in several ways.
std::vector<BrokenRule> broken_rules(const Study& study, const Comparison& comparison,
                                     const std::vector<RowFacts>& facts);

// "rule 5: 2 of 9 rows have one run, so no interval; run 3 repeats or more".
std::string format_sentence(const BrokenRule& broken);

// "Rules of Hoefler and Belli (SC15): 2 of 12 broken", or that no breach was found.
std::string summarize(const std::vector<BrokenRule>& broken);

// p-value of the hypothesis that values are normally distributed: Shapiro and Francia's W', with
// the distribution of Royston, "A toolkit for testing for non-normality", The Statistician 42,
// 1993. For 5 to 5,000 values. Returns 1 if all values are equal
// but for rounding.
double normality(std::vector<double> values);

}  // namespace paceline
