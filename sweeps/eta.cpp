#include "sweeps/eta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"
#include "results/quantiles.h"

namespace paceline {

void Eta::add(std::size_t point, double seconds) {
  seconds_[point].push_back(seconds);
}

std::optional<double> Eta::remaining(const std::vector<std::size_t>& points) const {
  if (seconds_.empty()) return std::nullopt;
  std::vector<double> all;
  for (const auto& [point, seconds] : seconds_)
    all.insert(all.end(), seconds.begin(), seconds.end());
  const double any = median(all);
  double total = 0;
  for (const std::size_t point : points) {
    const auto found = seconds_.find(point);
    total += found == seconds_.end() ? any : median(found->second);
  }
  return total;
}

std::string about(double seconds) {
  if (seconds >= 59.5) return "about " + format_seconds(seconds);
  return fmt::format("about {:.0f} s", std::max(1.0, std::round(seconds)));
}

}  // namespace paceline
