#include "analysis/statistics/robust.h"

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

struct TrimmedMoments {
  double mean = 0;
  double variance_of_mean = 0;
  double degrees_of_freedom = 0;  // 0: the error is unknown
};

TrimmedMoments trimmed_moments(std::span<const double> values) {
  if (values.empty()) throw internal_error("trimmed mean of no values");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = sorted.size() < 3 ? 0 : std::max<std::size_t>(1, sorted.size() / 5);
  const std::size_t kept = sorted.size() - 2 * cut;
  const double low = sorted[cut], high = sorted[cut + kept - 1];
  TrimmedMoments result;
  for (std::size_t i = cut; i < cut + kept; ++i) {
    result.mean += sorted[i] / static_cast<double>(kept);
  }
  const bool hides_all_spread = low == high && sorted.front() != sorted.back();
  if (sorted.size() < kFewestTrimmed || hides_all_spread) return result;

  for (double& value : sorted) value = std::clamp(value, low, high);
  const auto all = static_cast<double>(sorted.size()), counted = static_cast<double>(kept);
  double center = 0, squares = 0;
  for (const double value : sorted) center += value / all;
  for (const double value : sorted) squares += (value - center) * (value - center);
  result.variance_of_mean = squares / (counted * (counted - 1));
  result.degrees_of_freedom = counted - 1;
  return result;
}

}  // namespace

Difference trimmed_difference(std::span<const double> differences) {
  // Of one sample Yuen's error is too small: t intervals of it hold the mean of 4, 5 and 10 normal
  // values in 93.2, 93.5 and 93.9 %. Calibrated to 95 % by simulation.
  constexpr double kOfOneSample = 1.4;
  const TrimmedMoments all = trimmed_moments(differences);
  const double counted = all.degrees_of_freedom + 1;
  const double error = std::sqrt(all.variance_of_mean) * (1 + kOfOneSample / (counted * counted));
  return {all.mean, error, all.degrees_of_freedom, differences.size()};
}

Difference trimmed_difference(std::span<const double> left, std::span<const double> right) {
  const TrimmedMoments a = trimmed_moments(left), b = trimmed_moments(right);
  Difference result{a.mean - b.mean, 0, 0, std::min(left.size(), right.size())};
  if (a.degrees_of_freedom <= 0 || b.degrees_of_freedom <= 0) return result;
  const double va = a.variance_of_mean, vb = b.variance_of_mean;
  result.standard_error = std::sqrt(va + vb);
  result.degrees_of_freedom =
      va + vb == 0 ? a.degrees_of_freedom + b.degrees_of_freedom
                   : (va + vb) * (va + vb) /
                         (va * va / a.degrees_of_freedom + vb * vb / b.degrees_of_freedom);
  return result;
}

double combined_p_value(const Difference& of_means, const Difference& trimmed) {
  return std::min(
      {1.0, of_means.p_value() / (1 - kTrimmedShare), trimmed.p_value() / kTrimmedShare});
}

std::size_t most_outlying(std::size_t count) {
  return count < 4 ? 0 : count / 3;
}

std::vector<std::size_t> standing_out(std::span<const double> values, double least) {
  constexpr double kFar = 6, kUsual = 1.4826;
  std::vector<std::size_t> found;
  if (most_outlying(values.size()) == 0) return found;
  const double middle = median({values.begin(), values.end()});
  const auto deviations = mapped(values, [&](double value) { return std::abs(value - middle); });
  const double limit = std::max(least, kFar * kUsual * median(deviations));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (deviations[i] > limit) found.push_back(i);
  }
  return found;
}

std::vector<std::size_t> outlying(std::span<const double> values, double least) {
  std::vector<std::size_t> found = standing_out(values, least);
  if (found.size() > most_outlying(values.size())) found.clear();
  return found;
}

double p_of_more_standing_out(std::size_t current, std::size_t baseline, std::size_t rounds,
                              std::size_t horizon) {
  constexpr double kFewer = 1.5, kCorrection = 0.66;
  const auto more = static_cast<double>(current), fewer = static_cast<double>(baseline);
  if (current <= baseline) return 1;
  double statistic = (more - fewer) / std::sqrt(more + fewer);
  if (horizon > 0) {
    const double made = static_cast<double>(rounds) / static_cast<double>(horizon);
    statistic =
        (more - kFewer * fewer) / std::sqrt(more + fewer - kCorrection) * std::min(1.0, made);
  }
  return std::min(1.0, std::erfc(statistic / std::sqrt(2.0)));
}

double share_shown(std::size_t runs) {
  return 1 - std::pow(1 - kConfidence, 1 / static_cast<double>(runs));
}

std::size_t runs_that_exclude(double share, std::size_t shown) {
  // Adds up how likely it is to see at most `shown` of n.
  for (std::size_t n = shown + 1; share < 1; ++n) {
    double chance = std::pow(1 - share, static_cast<double>(n)), sum = chance;
    for (std::size_t k = 0; k < shown; ++k) {
      chance *= static_cast<double>(n - k) / static_cast<double>(k + 1) * share / (1 - share);
      sum += chance;
    }
    if (sum < 1 - kConfidence) return n;
  }
  return shown + 1;
}

}  // namespace paceline
