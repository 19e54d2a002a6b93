#include "analysis/statistics/outliers.h"

#include <algorithm>
#include <cmath>

namespace paceline {

std::size_t most_outlying(std::size_t count) {
  return count < 4 ? 0 : count / 3;
}

std::vector<std::size_t> outlying(std::span<const double> values, double least) {
  constexpr double kFar = 6, kUsual = 1.4826;
  std::vector<std::size_t> found;
  if (most_outlying(values.size()) == 0) return found;
  const auto find_middle = [](std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
  };
  const double middle = find_middle({values.begin(), values.end()});
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  const double limit = std::max(least, kFar * kUsual * find_middle(deviations));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (deviations[i] > limit) found.push_back(i);
  }
  if (found.size() > most_outlying(values.size())) found.clear();
  return found;
}

}  // namespace paceline
