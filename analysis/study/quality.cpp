#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/study/comparison.h"

namespace paceline {

namespace {

std::vector<double> known_values(const Row& row, std::optional<double> (*fact)(const Run&)) {
  std::vector<double> all;
  for (const Run& run : row.runs) {
    if (const auto value = fact(run)) all.push_back(*value);
  }
  return all;
}

std::optional<double> last_train_loss(const Run& run) {
  const auto& epochs = run->quality.epochs;
  return run->flags.synthetic || epochs.empty() ? std::nullopt : epochs.back().train_loss;
}

bool either_is_few(const std::vector<double>& a, const std::vector<double>& b) {
  return std::min(a.size(), b.size()) < kFewestRuns;
}

// Whether `more` is larger beyond the noise of both.
bool exceeds_noise(const std::vector<double>& more, const std::vector<double>& less) {
  const auto interval = independent_difference(more, less).interval();
  return !interval || lies_above(*interval, 0);
}

bool aims_at_goal(const Row& row) {
  return std::ranges::any_of(row.runs, [](const Run& run) { return !run.goal.empty(); });
}

}  // namespace

std::string QualityLoss::label() const {
  return of_accuracy ? "lower accuracy" : "higher loss";
}

std::string QualityLoss::text() const {
  return of_accuracy ? fmt::format("{:.2f} % beside {:.2f} %", 100 * row, 100 * base)
                     : fmt::format("{:.4g} beside {:.4g}", row, base);
}

std::optional<QualityLoss> quality_lost(const Row& base, const Row& row) {
  if (aims_at_goal(base) || aims_at_goal(row)) return std::nullopt;
  const auto accuracy = [](const Run& run) { return run->quality.test_accuracy; };
  const std::vector<double> before = known_values(base, accuracy),
                            after = known_values(row, accuracy);
  if (!before.empty() && !after.empty()) {
    const double high = average(before), low = average(after);
    if (high - low <= kAccuracyTolerance + kRounding) return std::nullopt;
    if (!either_is_few(before, after) && !exceeds_noise(before, after)) return std::nullopt;
    return QualityLoss{true, low, high};
  }
  const std::vector<double> less = known_values(base, last_train_loss),
                            more = known_values(row, last_train_loss);
  if (either_is_few(less, more)) return std::nullopt;
  const double low = average(less), high = average(more);
  if (high <= low * (1 + kLossTolerance) || !exceeds_noise(more, less)) return std::nullopt;
  return QualityLoss{false, high, low};
}

}  // namespace paceline
