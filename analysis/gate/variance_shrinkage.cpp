#include "analysis/gate/variance_shrinkage.h"

#include <algorithm>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/polygamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <limits>

namespace paceline {

namespace {

constexpr std::size_t kFewest = 4;

// Of one value of a difference: what the standard error squared times the count is.
double compute_variance(const Difference& difference) {
  return difference.standard_error * difference.standard_error *
         static_cast<double>(difference.count);
}

// The x > 0 with trigamma(x) = y, by Newton's method on 1 / trigamma, which is nearly a line
// (Smyth's appendix).
double trigamma_inverse(double y) {
  constexpr double kAlmostNone = 1e-7, kAlmostAll = 1e7;
  if (y > kAlmostAll) return 1 / std::sqrt(y);
  if (y < kAlmostNone) return 1 / y;
  double x = 0.5 + 1 / y;
  for (int i = 0; i < 50; ++i) {
    const double trigamma = boost::math::trigamma(x);
    const double step = trigamma * (1 - trigamma / y) / boost::math::polygamma(2, x);
    x += step;
    if (-step / x < 1e-9) break;
  }
  return x;
}

// Degrees of freedom and variance that are usual.
struct Usual {
  double degrees_of_freedom = 0, variance = 0;
};

Usual usual_among(const std::vector<Difference*>& differences) {
  const auto count = static_cast<double>(differences.size());
  std::vector<double> logs;
  double mean = 0, expected_spread = 0;
  for (const Difference* each : differences) {
    const double half = each->degrees_of_freedom / 2;
    logs.push_back(std::log(compute_variance(*each)) - boost::math::digamma(half) + std::log(half));
    mean += logs.back() / count;
    expected_spread += boost::math::trigamma(half) / count;
  }
  double spread = 0;
  for (const double value : logs) spread += (value - mean) * (value - mean) / (count - 1);
  if (spread <= expected_spread) {
    return {std::numeric_limits<double>::infinity(), std::exp(mean)};
  }
  const double half = trigamma_inverse(spread - expected_spread);
  return {2 * half, std::exp(mean + boost::math::digamma(half) - std::log(half))};
}

}  // namespace

void moderate(const std::vector<Difference*>& all) {
  std::vector<Difference*> differences;
  double most = 0;  // degrees of freedom that there are in all
  for (Difference* each : all) {
    if (each->degrees_of_freedom <= 0 || each->standard_error == 0) continue;
    differences.push_back(each);
    most += each->degrees_of_freedom;
  }
  if (differences.size() < kFewest) return;
  const Usual usual = usual_among(differences);
  const double borrowed = std::min(usual.degrees_of_freedom, most);
  for (Difference* each : differences) {
    const double own = each->degrees_of_freedom;
    const double variance =
        (borrowed * usual.variance + own * compute_variance(*each)) / (borrowed + own);
    each->standard_error = std::sqrt(variance / static_cast<double>(each->count));
    each->degrees_of_freedom = std::min(borrowed + own, most);
  }
}

}  // namespace paceline
