// Intervals from few runs. The run is the unit of replication, never the step.
//
// Times and rates are positive and their noise is a factor, so their means, ratios and intervals
// are taken on logarithms and given back as factors. See Hoefler and Belli, "Scientific
// benchmarking of parallel computing systems", SC15.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace paceline {

constexpr double kConfidence = 0.95;

// Fewer runs than this never decide anything.
constexpr std::size_t kFewestRuns = 3;

// Runs may be alike to the last digit: what is less than this apart is the same.
constexpr double kRounding = 1e-9;

struct Interval {
  double low = 0, high = 0;
};

// The whole of it, and by more than rounding.
bool lies_above(const Interval& interval, double limit);
bool lies_below(const Interval& interval, double limit);

struct Estimate {
  double value = 0;
  std::optional<Interval> interval;  // none from fewer than two values
  std::size_t count = 0;
};

enum class RatioKind {
  single,  // too few runs for an interval
  paired,  // t interval of the log ratios of runs that shared a round
  welch,   // Welch's t interval of the difference of mean logs
};

struct Ratio {
  Estimate estimate;
  RatioKind kind = RatioKind::single;
};

// A difference of two means on whatever scale the values are, and how well it is known.
struct Difference {
  double mean = 0, standard_error = 0;
  double degrees_of_freedom = 0;  // 0: nothing is known of the error
  std::size_t count = 0;          // values of the smaller side

  std::optional<Interval> interval(double confidence = kConfidence) const;
  // Two-sided, of Student's t for no difference; 1 where nothing is known of the error, and where
  // there is none but rounding.
  double p_value() const;
};

// Two-sided quantile of Student's t: 12.706 for 1 degree of freedom at 95 %. Fractional degrees
// of freedom are welcome.
double t_quantile(double degrees_of_freedom, double confidence = kConfidence);

// Geometric mean of positive values with the t interval of the mean of their logs. Values are
// not empty.
Estimate geometric_mean(std::span<const double> values);

// Arithmetic mean of shares (0 to 1) with the t interval of it, cut to 0 and 1. Not empty. For
// utilizations, which may be 0 and so have no logarithm.
Estimate mean_share(std::span<const double> shares);

// exp(mean) of log ratios of pairs with the t interval of their mean. Not empty.
Ratio paired_ratio(std::span<const double> log_ratios);

// Geometric mean of `above` over that of `below`, runs independent: Welch's interval on logs with
// the degrees of freedom of Welch and Satterthwaite. No interval unless both have two values.
Ratio independent_ratio(std::span<const double> above, std::span<const double> below);

// Mean of differences of pairs. Not empty.
Difference paired_difference(std::span<const double> differences);

// Mean of `left` minus that of `right`: Welch's standard error, degrees of freedom of Welch and
// Satterthwaite. None of both is empty.
Difference independent_difference(std::span<const double> left, std::span<const double> right);

// The same where both sides spread alike, so that one value will do on one of them: Student's t
// with the pooled variance.
Difference pooled_difference(std::span<const double> left, std::span<const double> right);

// Of many tests, each p so that rejecting those below a level keeps the chance of any false
// rejection below that level, however the tests depend on each other: Holm, "A simple sequentially
// rejective multiple test procedure", Scand. J. Statist. 6, 1979. In the order given. Of more
// `tests` than are given, the others count as ones that tell nothing.
std::vector<double> holm_adjusted(std::span<const double> p_values, std::size_t tests = 0);

}  // namespace paceline
