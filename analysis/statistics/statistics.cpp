#include "analysis/statistics/statistics.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

#include "analysis/statistics/anytime.h"
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
  if (values.empty()) throw internal_error("mean of no values");
  Moments result{.count = static_cast<double>(values.size())};
  for (const double value : values) result.mean += value / result.count;
  for (const double value : values) {
    result.variance += (value - result.mean) * (value - result.mean);
  }
  result.variance = values.size() > 1 ? result.variance / (result.count - 1) : 0;
  return result;
}

constexpr double kLargestCorrelation = 0.95;

// The variance of the mean of sessions in a row, over the variance of a session.
double mean_variance(double resemblance, std::size_t sessions) {
  const auto n = static_cast<double>(sessions);
  double sum = n, power = 1;
  for (double apart = 1; apart < n; ++apart) {
    power *= resemblance;
    sum += 2 * (n - apart) * power;
  }
  return sum / (n * n);
}

}  // namespace

double average(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool lies_above(const Interval& interval, double limit) {
  return interval.low > limit + kRounding * std::max(1.0, std::abs(limit));
}

bool lies_below(const Interval& interval, double limit) {
  return interval.high < limit - kRounding * std::max(1.0, std::abs(limit));
}

double t_quantile(double degrees_of_freedom, double confidence) {
  const boost::math::students_t_distribution<double> distribution(degrees_of_freedom);
  return boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
}

std::optional<Interval> Difference::interval(double confidence) const {
  if (degrees_of_freedom <= 0) return std::nullopt;
  const double parts = static_cast<double>(sequences);
  const double quantile =
      sequences == 0 ? t_quantile(degrees_of_freedom, confidence)
                     : anytime_quantile(count, 1 - (1 - confidence) / parts, degrees_of_one());
  if (std::isinf(quantile)) return std::nullopt;
  return Interval{mean - quantile * standard_error, mean + quantile * standard_error};
}

double Difference::p_value() const {
  // Sums of the largest numbers overflow.
  if (!std::isfinite(mean) || !std::isfinite(standard_error)) return 1;
  if (degrees_of_freedom <= 0 || std::abs(mean) < kRounding) return 1;
  if (sequences > 0) {
    const double t = mean / standard_error;  // infinite if all values are equal
    return std::min(1.0,
                    static_cast<double>(sequences) / anytime_evidence(t, count, degrees_of_one()));
  }
  if (standard_error == 0) return 0;
  const boost::math::students_t_distribution<double> distribution(degrees_of_freedom);
  return 2 *
         boost::math::cdf(boost::math::complement(distribution, std::abs(mean / standard_error)));
}

std::vector<double> logarithms(std::span<const double> values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) {
    if (!(value > 0)) throw internal_error("logarithm of a value that is not positive");
    result.push_back(std::log(value));
  }
  return result;
}

Estimate as_factor(const Difference& logs, double confidence) {
  const Estimate mean{logs.mean, logs.interval(confidence), logs.count, logs.needed};
  return transformed(mean, [](double log) { return std::exp(log); });
}

Estimate geometric_mean(std::span<const double> values, Stopping stopping) {
  if (values.size() == 1) return {values[0], std::nullopt, 1};  // exactly, not by way of its log
  return as_factor(paired_difference(logarithms(values), stopping));
}

Estimate ratio_of_sums(std::span<const double> above, std::span<const double> below,
                       Stopping stopping) {
  const double mean_below = moments(below).mean;
  const double ratio = moments(above).mean / mean_below;
  std::vector<double> off;
  for (std::size_t i = 0; i < above.size(); ++i) {
    off.push_back((above[i] - ratio * below[i]) / mean_below);
  }
  Difference difference = paired_difference(off, stopping);
  difference.mean = ratio;
  Estimate estimate{ratio, difference.interval(), above.size()};
  if (estimate.interval) estimate.interval->low = std::max(0.0, estimate.interval->low);
  return estimate;
}

Estimate mean_share(std::span<const double> shares, Stopping stopping) {
  const Difference mean = paired_difference(shares, stopping);
  Estimate estimate{mean.mean, mean.interval(), shares.size()};
  if (!estimate.interval) return estimate;
  estimate.interval =
      Interval{std::max(0.0, estimate.interval->low), std::min(1.0, estimate.interval->high)};
  return estimate;
}

Difference moderated(Difference difference, const VarianceOfOthers& others) {
  const double own = difference.degrees_of_freedom,
               theirs = std::min(others.most * own, others.degrees);
  if (own <= 0 || theirs <= 0) return difference;
  const double all = own + theirs;
  const double n = static_cast<double>(difference.count), error = difference.standard_error;
  const double variance = (own * n * error * error + theirs * others.variance) / all;
  difference.standard_error = std::sqrt(variance / n);
  difference.degrees_of_freedom = all;
  return difference;
}

Difference paired_difference(std::span<const double> differences, Stopping stopping) {
  const Moments m = moments(differences);
  return {m.mean, std::sqrt(m.variance_of_mean()), m.count - 1, differences.size(),
          stopping == Stopping::by_results ? 1UL : 0UL};
}

Difference independent_difference(std::span<const double> left, std::span<const double> right,
                                  Stopping stopping) {
  const Moments a = moments(left), b = moments(right);
  Difference result{a.mean - b.mean, 0, 0, std::min(left.size(), right.size())};
  if (result.count < 2) return result;
  const double va = a.variance_of_mean(), vb = b.variance_of_mean();
  if (stopping == Stopping::by_results) {
    return {result.mean, std::sqrt(va) + std::sqrt(vb), a.count + b.count - 2, result.count, 2};
  }
  result.standard_error = std::sqrt(va + vb);
  result.degrees_of_freedom =
      va + vb == 0 ? a.count + b.count - 2
                   : (va + vb) * (va + vb) / (va * va / (a.count - 1) + vb * vb / (b.count - 1));
  return result;
}

Difference pooled_difference(std::span<const double> left, std::span<const double> right) {
  const Moments a = moments(left), b = moments(right);
  Difference result{a.mean - b.mean, 0, a.count + b.count - 2, std::min(left.size(), right.size())};
  if (result.degrees_of_freedom <= 0) return result;
  const double variance =
      (a.variance * (a.count - 1) + b.variance * (b.count - 1)) / result.degrees_of_freedom;
  result.standard_error = std::sqrt(variance * (1 / a.count + 1 / b.count));
  return result;
}

std::vector<double> holm_adjusted(std::span<const double> p_values, std::size_t tests) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(std::max(order.size(), tests) - rank);
    largest = std::max(largest, std::min(1.0, left * p_values[order[rank]]));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

std::vector<bool> find_discoveries(std::span<const double> p_values, double rate) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) order.emplace_back(p_values[i], i);
  std::ranges::sort(order);
  const double each = rate / static_cast<double>(order.size());
  std::size_t count = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (order[k].first <= static_cast<double>(k + 1) * each) count = k + 1;
  }
  std::vector<bool> found(p_values.size());
  for (std::size_t k = 0; k < count; ++k) found[order[k].second] = true;
  return found;
}

double resemblance_from_differences(const ScaledSeries& series) {
  const auto& values = series.values;
  const auto& scales = series.scales;
  const double limit = 4 * std::sqrt(2.0) * neighbour_noise(series);
  if (values.size() < 3 || limit <= 0) return 0;
  const auto variance = [&](std::size_t apart) {
    double sum = 0;
    for (std::size_t i = apart; i < values.size(); ++i) {
      const double scale =
          std::sqrt((scales[i] * scales[i] + scales[i - apart] * scales[i - apart]) / 2);
      const double difference = std::clamp((values[i] - values[i - apart]) / scale, -limit, limit);
      sum += difference * difference;
    }
    return sum / static_cast<double>(values.size() - apart);
  };
  return variance(2) / variance(1) - 1;
}

double resemblance_from_residuals(const std::vector<std::vector<double>>& levels) {
  double squares = 0, products = 0, count = 0;
  for (const std::vector<double>& rest : levels) {
    for (std::size_t i = 0; i < rest.size(); ++i) {
      squares += rest[i] * rest[i];
      if (i > 0) products += rest[i] * rest[i - 1];
    }
    count += static_cast<double>(rest.size());
  }
  if (squares <= 0) return 0;
  // Kendall's correction: each mean costs about (1 + 3 r) / n.
  const double share = static_cast<double>(levels.size()) / count;
  return (products / squares + share) / std::max(1 - 3 * share, 0.25);
}

double plausible_resemblance(double estimate, std::size_t sessions, double errors) {
  const double r = std::clamp(estimate, 0.0, kLargestCorrelation);
  const double error = std::sqrt((1 - r * r) / static_cast<double>(sessions));
  return std::clamp(estimate + errors * error, 0.0, kLargestCorrelation);
}

double resemblance_inflation(double resemblance, std::size_t before, std::size_t after) {
  const auto n1 = static_cast<double>(before), n2 = static_cast<double>(after);
  const double mean1 = mean_variance(resemblance, before);
  const double mean2 = mean_variance(resemblance, after);
  // The means of neighbouring levels resemble each other, too.
  double shared = 0;
  for (std::size_t i = 1; i <= before; ++i) {
    for (std::size_t k = 0; k < after; ++k) shared += std::pow(resemblance, i + k);
  }
  const double difference = mean1 + mean2 - 2 * shared / (n1 * n2);
  const double within = (n1 * (1 - mean1) + n2 * (1 - mean2)) / (n1 + n2 - 2);
  return difference / (1 / n1 + 1 / n2) / within;
}

double plausible_noise(double degrees_of_freedom) {
  const boost::math::chi_squared distribution(degrees_of_freedom);
  return std::sqrt(degrees_of_freedom / boost::math::quantile(distribution, 0.1));
}

}  // namespace paceline
