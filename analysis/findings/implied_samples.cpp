#include "analysis/findings/implied_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "analysis/study/point_names.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kFewestRows = 3, kMostNamed = 3;
constexpr double kDeviation = 0.1;

std::string samples_text(double samples) {
  return samples >= 1e6 ? fmt::format("{:.3g} million", samples / 1e6)
                        : fmt::format("{:.0f}", samples);
}

}  // namespace

std::string implied_samples_line(const Study& study) {
  std::vector<std::pair<const Row*, double>> implied;
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) {
    rows.push_back(&row);
    const Run& run = row.first();
    if (!run.made_elsewhere() || !run.fit_seconds || !run.rate_is_given) continue;
    implied.emplace_back(&row, *run.fit_seconds * *run.samples_per_second);
  }
  if (implied.size() < kFewestRows) return "";
  std::vector<double> sorted;
  for (const auto& [row, samples] : implied) sorted.push_back(samples);
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  std::vector<std::string> named;
  std::vector<double> others;
  const std::vector<std::string> names = point_names(study, rows);
  std::size_t deviating = 0;
  for (const auto& [row, samples] : implied) {
    if (std::abs(samples / median - 1) <= kDeviation) {
      others.push_back(samples);
    } else if (++deviating <= kMostNamed) {
      named.push_back(fmt::format("of {} is {} samples",
                                  names[static_cast<std::size_t>(row - study.rows.data())],
                                  samples_text(samples)));
    }
  }
  if (deviating == 0) return "";
  const auto [low, high] = std::minmax_element(others.begin(), others.end());
  return fmt::format("time x rate {}{}, of the other {} {} to {}: these rows do not agree",
                     join(named, ", "), deviating > kMostNamed ? ", ..." : "",
                     counted(others.size(), "row"), samples_text(*low), samples_text(*high));
}

}  // namespace paceline
