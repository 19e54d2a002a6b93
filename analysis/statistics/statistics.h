// Confidence intervals from few runs. The run is the unit of replication, never the step.
//
// Times and rates are positive and have multiplicative noise. So means, ratios and intervals are
// computed on logarithms and returned as factors. See Hoefler and Belli, "Scientific benchmarking
// of parallel computing systems", SC15.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics/stretches.h"

namespace paceline {

constexpr double kConfidence = 0.95;

// The probability that a change called detectable is found. Formulas aim at more, since they know
// the noise only by its estimate.
constexpr double kDetectablePower = 0.9, kAimedPower = 0.95;

// No decision is made from fewer runs.
constexpr std::size_t kFewestRuns = 3;

// Nor from fewer sessions where these are the unit; they have that many runs or more.
constexpr std::size_t kFewestPooledSessions = 2;

// The same for runs whose number depends on their results (anytime.h): with fewer, a mean has no
// finite interval at its share of the error rate.
constexpr std::size_t kFewestSequentialRuns = 4;

// Relative differences below this are treated as rounding.
constexpr double kRounding = 1e-9;

struct Interval {
  double low = 0, high = 0;
};

// From the least to the greatest of values.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double width() const { return high - low; }
};

double average(std::span<const double> values);  // at least one value

// Whether the whole interval lies above `limit`, by more than rounding.
bool lies_above(const Interval& interval, double limit);
bool lies_below(const Interval& interval, double limit);

struct Estimate {
  double value = 0;
  std::optional<Interval> interval;  // empty for fewer than two values
  std::size_t count = 0;
  std::size_t needed = kFewestRuns;  // values for a decision
};

// By a function that only grows, or only falls.
template <typename Function>
Interval transformed(const Interval& interval, const Function& function) {
  const double a = function(interval.low), b = function(interval.high);
  return {std::min(a, b), std::max(a, b)};
}
template <typename Function>
Estimate transformed(Estimate estimate, const Function& function) {
  estimate.value = function(estimate.value);
  if (estimate.interval) estimate.interval = transformed(*estimate.interval, function);
  return estimate;
}

enum class RatioKind {
  single,  // too few runs for an interval
  paired,  // t interval of the log ratios of runs that shared a round
  welch,   // Welch's t interval of the difference of mean logs
};

// How the number of values came about.
enum class Stopping {
  fixed,       // beforehand
  by_results,  // it may depend on the values, so intervals hold for every number (anytime.h)
};

struct Ratio {
  Estimate estimate;
  RatioKind kind = RatioKind::single;
};

// A difference of two means, on the scale of the values, with its standard error.
struct Difference {
  double mean = 0, standard_error = 0;
  double degrees_of_freedom = 0;  // 0: the error is unknown
  std::size_t count = 0;          // number of values of the smaller side
  // 0: fixed numbers of values. Else Stopping::by_results: the number of independent means, each
  // with its share of the error rate, whose standard errors are added up in `standard_error`.
  std::size_t sequences = 0;
  std::size_t needed = kFewestRuns;  // values for a decision

  // Empty if the error is unknown or unbounded.
  std::optional<Interval> interval(double confidence = kConfidence) const;
  // Two-sided p-value of Student's t test for no difference, or of its anytime-valid counterpart. 1
  // if the error is unknown, or if there is no difference beyond rounding.
  double p_value() const;

 private:
  // Of one of two sequences they are not known: 0.
  double degrees_of_one() const { return sequences == 1 ? degrees_of_freedom : 0; }
};

// Two-sided quantile of Student's t: 12.706 for 1 degree of freedom at 95 %. Degrees of freedom may
// be fractional.
double t_quantile(double degrees_of_freedom, double confidence = kConfidence);

// Throws internal if a value is not positive.
std::vector<double> logarithms(std::span<const double> values);

// A difference or mean of logarithms, with its interval, as a factor.
Estimate as_factor(const Difference& logs, double confidence = kConfidence);

// Geometric mean of positive values, with the t interval of the mean of their logarithms. `values`
// must not be empty.
Estimate geometric_mean(std::span<const double> values, Stopping stopping = Stopping::fixed);

// The sum of `above` over that of `below`, which have a value of each run: joules over samples. The
// interval is that of the linearized ratio, and never below 0. Cochran, "Sampling techniques", 3rd
// ed., 1977, ch. 6.
Estimate ratio_of_sums(std::span<const double> above, std::span<const double> below,
                       Stopping stopping = Stopping::fixed);

// Arithmetic mean of shares (0 to 1), with its t interval clipped to [0, 1]. `shares` must not be
// empty. For utilizations, which may be 0 and so have no logarithm.
Estimate mean_share(std::span<const double> shares, Stopping stopping = Stopping::fixed);

// Mean of the differences of pairs. Must not be empty.
Difference paired_difference(std::span<const double> differences,
                             Stopping stopping = Stopping::fixed);

// What is known of the variance of such values by others, and by how many degrees of freedom.
struct VarianceOfOthers {
  double variance = 0, degrees = 0;
  double most = 1;  // they count as at most so many times its own degrees
};
// With its variance drawn towards that of the others, as far as their degrees of freedom weigh, but
// at most `most` times its own: it may be noisier than these. Smyth, "Linear models and empirical
// Bayes methods for assessing differential expression", Stat. Appl. Genet. Mol. Biol. 3, 2004.
Difference moderated(Difference difference, const VarianceOfOthers& others);

// Mean of `left` minus mean of `right`, with Welch's standard error and Welch-Satterthwaite degrees
// of freedom. Neither may be empty.
Difference independent_difference(std::span<const double> left, std::span<const double> right,
                                  Stopping stopping = Stopping::fixed);

// The same with pooled variance (Student's t), for sides with equal variance. One side may have a
// single value.
Difference pooled_difference(std::span<const double> left, std::span<const double> right);

// Holm-adjusted p-values, in the order given: rejecting those below a level keeps the family-wise
// error rate below it, whatever the dependence between tests. Holm, "A simple sequentially
// rejective multiple test procedure", Scand. J. Statist. 6, 1979. If `tests` is larger than the
// number of values, the others count as p = 1.
std::vector<double> holm_adjusted(std::span<const double> p_values, std::size_t tests = 0);

// Which of these p-values are discoveries, of which at most `rate` are expected to be false.
// Benjamini and Hochberg, J. R. Statist. Soc. B 57, 1995: of the k least, all are below k times the
// rate over their number.
std::vector<bool> find_discoveries(std::span<const double> p_values, double rate);

// How much neighbouring sessions resemble each other: the correlation of an autoregressive series.

// From the variances of differences of neighbours and of next but one, whose ratio is 1 + r: shifts
// and drifts hardly affect it.
double resemblance_from_differences(const ScaledSeries& series);

// From what levels leave, one list per level, corrected for the means that were taken out.
double resemblance_from_residuals(const std::vector<std::vector<double>>& levels);

// The estimate and so many of its standard errors.
double plausible_resemblance(double estimate, std::size_t sessions, double errors);

// By what factor resemblance raises the squared t of two means of `before` and `after` sessions in
// a row: the means vary more than of independent sessions, and the sessions about them less.
double resemblance_inflation(double resemblance, std::size_t before, std::size_t after);

// What the standard deviation may be (90 %, one-sided) as a multiple of its estimate.
double plausible_noise(double degrees_of_freedom);

}  // namespace paceline
