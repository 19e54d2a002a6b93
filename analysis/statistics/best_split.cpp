#include "analysis/statistics/best_split.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/statistics/resemblance.h"

namespace paceline {

namespace {

constexpr double kPlausibleErrorsOfFew = 3.5;

}  // namespace

double BestSplit::p_if_independent() const {
  return static_cast<double>(splits) * difference.p_value();
}

double BestSplit::p_value() const {
  Difference alike = difference;
  alike.standard_error *=
      std::sqrt(resemblance_inflation(plausible_resemblance, at, sessions() - at));
  return static_cast<double>(splits) * alike.p_value();
}

BestSplit best_split(std::span<const double> values) {
  BestSplit best;
  double most = -1;
  best.splits = values.size() - 3;
  for (std::size_t at = 2; at + 2 <= values.size(); ++at) {
    const Difference difference = pooled_difference(values.subspan(at), values.first(at));
    const double t = std::abs(difference.mean) / std::max(difference.standard_error, 1e-300);
    if (t <= most) continue;
    most = t;
    best.at = at;
    best.difference = difference;
  }
  if (values.size() < kFewestForResemblance) return best;
  std::vector<std::vector<double>> rest;
  for (const auto& level : {values.first(best.at), values.subspan(best.at)}) {
    std::vector<double>& left = rest.emplace_back(level.begin(), level.end());
    const double mean = paired_difference(level).mean;
    for (double& value : left) value -= mean;
  }
  best.plausible_resemblance =
      plausible_resemblance(resemblance_from_residuals(rest), values.size(), kPlausibleErrorsOfFew);
  return best;
}

double detectable_split(const BestSplit& split, double level) {
  const std::size_t values = split.sessions();
  const auto n = static_cast<double>(values), before = static_cast<double>(split.at);
  const double noise = split.difference.standard_error / std::sqrt(1 / before + 1 / (n - before));
  const double freedom = split.difference.degrees_of_freedom;
  const std::size_t half = values / 2;
  const double error =
      std::sqrt((1 / static_cast<double>(half) + 1 / static_cast<double>(values - half)) *
                resemblance_inflation(plausible_resemblance(split.plausible_resemblance, values, 1),
                                      half, values - half));
  return noise * plausible_noise(freedom) * error *
         (t_quantile(freedom, 1 - level / static_cast<double>(split.splits)) +
          t_quantile(freedom, 2 * kAimedPower - 1));
}

}  // namespace paceline
