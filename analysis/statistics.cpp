#include "analysis/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "engine/core/error.h"

namespace paceline {

namespace {

struct Moments {
  double mean = 0;
  double variance = 0;  // unbiased; 0 from one value
  double count = 0;
  double variance_of_mean() const { return variance / count; }
};

Moments moments(std::span<const double> values) {
  if (values.empty()) throw Error(ErrorKind::internal, "mean of no values");
  Moments result;
  result.count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / result.count;
  for (const double value : values) {
    result.variance += (value - result.mean) * (value - result.mean);
  }
  result.variance = values.size() > 1 ? result.variance / (result.count - 1) : 0;
  return result;
}

std::vector<double> logs(std::span<const double> values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) {
    if (!(value > 0)) throw Error(ErrorKind::internal, "logarithm of a value that is not positive");
    result.push_back(std::log(value));
  }
  return result;
}

Estimate from_logs(double mean, double half_width, std::size_t count, bool with_interval) {
  Estimate estimate{std::exp(mean), std::nullopt, count};
  if (with_interval) {
    estimate.interval = Interval{std::exp(mean - half_width), std::exp(mean + half_width)};
  }
  return estimate;
}

Estimate mean_of_logs(std::span<const double> values) {
  const Moments m = moments(values);
  if (values.size() < 2) return from_logs(m.mean, 0, values.size(), false);
  return from_logs(m.mean, t_quantile(m.count - 1) * std::sqrt(m.variance_of_mean()), values.size(),
                   true);
}

}  // namespace

double t_quantile(double degrees_of_freedom, double confidence) {
  const boost::math::students_t_distribution<double> distribution(degrees_of_freedom);
  return boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
}

Estimate geometric_mean(std::span<const double> values) {
  if (values.size() == 1) return {values[0], std::nullopt, 1};  // exactly, not by way of its log
  return mean_of_logs(logs(values));
}

Estimate mean_share(std::span<const double> shares) {
  const Moments m = moments(shares);
  Estimate estimate{m.mean, std::nullopt, shares.size()};
  if (shares.size() < 2) return estimate;
  const double half_width = t_quantile(m.count - 1) * std::sqrt(m.variance_of_mean());
  estimate.interval =
      Interval{std::max(0.0, m.mean - half_width), std::min(1.0, m.mean + half_width)};
  return estimate;
}

Ratio paired_ratio(std::span<const double> log_ratios) {
  const Estimate estimate = mean_of_logs(log_ratios);
  return {estimate, estimate.interval ? RatioKind::paired : RatioKind::single};
}

Ratio independent_ratio(std::span<const double> above, std::span<const double> below) {
  const Moments a = moments(logs(above)), b = moments(logs(below));
  const std::size_t count = std::min(above.size(), below.size());
  const double mean = a.mean - b.mean;
  if (count < 2) return {from_logs(mean, 0, count, false), RatioKind::single};
  const double va = a.variance_of_mean(), vb = b.variance_of_mean();
  if (va + vb == 0) return {from_logs(mean, 0, count, true), RatioKind::welch};
  const double degrees_of_freedom =
      (va + vb) * (va + vb) / (va * va / (a.count - 1) + vb * vb / (b.count - 1));
  const double half_width = t_quantile(degrees_of_freedom) * std::sqrt(va + vb);
  return {from_logs(mean, half_width, count, true), RatioKind::welch};
}

}  // namespace paceline
