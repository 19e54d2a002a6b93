#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <numeric>

#include "analysis/statistics/level_shifts.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr std::size_t kFewestForWeekdays = 28;  // sessions
constexpr std::size_t kFewestOfAWeekday = 4;

double median_around(const std::vector<double>& values, std::size_t at) {
  const std::size_t begin = at - std::min<std::size_t>(at, 7);
  const std::size_t end = std::min(values.size(), at + 8);
  return median({values.begin() + static_cast<std::ptrdiff_t>(begin),
                 values.begin() + static_cast<std::ptrdiff_t>(end)});
}

}  // namespace

std::size_t weekday(double day) {  // 1970-01-01 was a Thursday
  return static_cast<std::size_t>(std::fmod(std::fmod(std::floor(day) + 3, 7) + 7, 7));
}

std::optional<std::array<double, 7>> weekday_effects(std::span<const double> days,
                                                     const std::vector<double>& values) {
  if (values.size() < kFewestForWeekdays) return std::nullopt;
  const double limit = 4 * neighbour_noise({values, std::vector<double>(values.size(), 1)});
  std::array<double, 7> sums{}, effects{};
  std::array<std::size_t, 7> counts{};
  std::vector<double> deviations;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double deviation = std::clamp(values[i] - median_around(values, i), -limit, limit);
    deviations.push_back(deviation);
    sums[weekday(days[i])] += deviation;
    ++counts[weekday(days[i])];
  }
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(deviations.begin(), deviations.end(), 0.0) / n;
  double between = 0, groups = 0;
  for (std::size_t k = 0; k < 7; ++k) {
    if (counts[k] == 0) continue;
    if (counts[k] < kFewestOfAWeekday) return std::nullopt;
    const auto count = static_cast<double>(counts[k]);
    effects[k] = sums[k] / count - mean;
    between += count * effects[k] * effects[k];
    ++groups;
  }
  double total = 0;
  for (const double each : deviations) total += (each - mean) * (each - mean);
  const double within = total - between;
  if (groups < 2 || within <= 0) return std::nullopt;
  const double f = (between / (groups - 1)) / (within / (n - groups));
  const boost::math::fisher_f distribution(groups - 1, n - groups);
  if (boost::math::cdf(boost::math::complement(distribution, f)) > kDriftLevel) return std::nullopt;
  return effects;
}

}  // namespace paceline
