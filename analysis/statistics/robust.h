// Means that an outlier cannot spoil, with intervals: beside those of statistics.h, which are exact
// for normal logarithms and as wide as the worst run makes them.
//
// The largest and the smallest fifth of the values, at least one each, do not count: of 5 to 9
// values one each, of 10 to 14 two. The error comes from winsorized values, in which each that does
// not count is replaced by the next that does.
//   Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61, 1974.
//   Tukey and McLaughlin, "Less vulnerable confidence and significance procedures for location from
//   a single sample", Sankhya A 25, 1963.
//
// Why no ranks: with 5 pairs the signed-rank test cannot reach 95 % (p is 0.0625 at least), and of
// 5 and 5 values the Mann-Whitney interval ends at the third largest of 25 differences, five of
// which an outlier makes. Trimmed means bear it from 5 values on, and their p is small enough for
// Holm's adjustment of many tests.
//
// Measured (docs/error-rates.md): intervals hold the truth in 94.6 to 97.4 %, for 4 to 30 normal or
// heavy-tailed (t, 3 degrees of freedom) values, and where 5 or 10 % of runs are 1.3 to 2 times as
// long.
//
// Assumed: independent values, from a distribution that is symmetric or has the same shape on both
// sides of a comparison. If more than a fifth of one side's runs are slow, those are no outliers.
// 4 values have an interval that is true, but wide; fewer have none.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

// Fewer values have no trimmed mean whose error is known.
constexpr std::size_t kFewestTrimmed = 4;

// Trimmed mean of the differences of pairs. Must not be empty. As everywhere in this file, of fewer
// than kFewestTrimmed values the mean is the median, its error is unknown, and it is unknown too
// if all values that count are equal and others are not.
Difference trimmed_difference(std::span<const double> differences);

// Trimmed mean of `left` minus trimmed mean of `right`, with Yuen's error and degrees of freedom.
// Neither may be empty.
Difference trimmed_difference(std::span<const double> left, std::span<const double> right);

// Two-sided p of no difference by means and by trimmed means together, whichever finds one. Errs in
// at most p of the cases if each does: the trimmed means have a fifth of the error rate, so that
// what they cost where there is no outlier is little.
inline constexpr double kTrimmedShare = 0.2;
double combined_p_value(const Difference& of_means, const Difference& trimmed);

// Values that stand out of the others: runs that something else held up.

// Indices of the values that are further from the median than `least`, and than six times the
// usual deviation (1.4826 times the median one, Hampel's). None of fewer than 4 values.
std::vector<std::size_t> standing_out(std::span<const double> values, double least);

// The same. None if they are more than a third (or, of 4 or 5 values, more than one): then they are
// no outliers, but another mode.
std::vector<std::size_t> outlying(std::span<const double> values, double least);

// How many of `count` values may be outlying.
std::size_t most_outlying(std::size_t count);

// Whether they are of one side. In `rounds` of two sides, a run stood out `current` times on one
// side and `baseline` times on the other. If both have the same share of such runs, each is on
// either side with the same chance, so (current - baseline) / sqrt(current + baseline) is nearly
// normal.

// Two-sided p of so many more on the current side; 1 where there are not more. `horizon`: 0 for a
// fixed number of rounds. Else somebody looks after each round, up to so many: the statistic counts
// by the share of them that are made, as in O'Brien and Fleming's plans ("A multiple testing
// procedure for clinical trials", Biometrics 35, 1979), and is so corrected that 3 and none at the
// end are just below 0.05. By exact sums over all rates of equal sides and all looks, p is below
// 0.05 in 2.8 % of fixed and in 5.3 % of watched studies at most (20 rounds or more), below 0.025
// in 1.5 %.
double p_of_more_standing_out(std::size_t current, std::size_t baseline, std::size_t rounds,
                              std::size_t horizon);

// The smallest share of runs of which `runs` show one in 95 %.
double share_shown(std::size_t runs);
// How many runs exclude a share (95 %) of which they show so many: 29, 46, 61 and 76 of a tenth.
std::size_t runs_that_exclude(double share, std::size_t shown);

}  // namespace paceline
