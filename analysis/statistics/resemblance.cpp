#include "analysis/statistics/resemblance.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>

namespace paceline {

namespace {

constexpr double kLargestCorrelation = 0.95;

// Of a mean of sessions in a row, over the variance of a session.
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
