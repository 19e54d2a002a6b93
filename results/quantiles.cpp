#include "results/quantiles.h"

#include <algorithm>
#include <cstddef>

namespace paceline {

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const double rest = at - static_cast<double>(low);
  return sorted[low] * (1 - rest) + sorted[std::min(low + 1, sorted.size() - 1)] * rest;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

StepQuantiles step_quantiles(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {quantile(seconds, 0.05), quantile(seconds, 0.5), quantile(seconds, 0.95),
          quantile(seconds, 0.99), quantile(seconds, 1)};
}

}  // namespace paceline
