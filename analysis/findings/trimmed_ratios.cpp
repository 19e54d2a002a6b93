#include "analysis/findings/trimmed_ratios.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/study/point_names.h"
#include "analysis/study/trimmed.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kMuchNarrower = 0.5;
constexpr std::size_t kMostTrimmed = 4;

bool is_spread_out(const RowValues& costs, double spread) {
  const auto [least, most] = std::ranges::minmax(
      costs.values, {}, [](const std::vector<double>& unit) { return unit.front(); });
  return most.front() - least.front() > std::log(spread);
}

double log_width(const Interval& interval) {
  return std::log(interval.high / interval.low);
}

std::optional<Estimate> trimmed_speed_up(const Row& base, const RowFacts& facts, bool rates,
                                         double spread) {
  const RowValues before = log_costs(base, rates), after = log_costs(*facts.row, rates);
  if (!is_spread_out(before, spread) && !is_spread_out(after, spread)) return std::nullopt;
  const Estimate trimmed = as_factor(trimmed_contrast(after, before));
  const auto& known = facts.speed_up->ratio.estimate.interval;
  const bool is_narrower = known && trimmed.interval &&
                           log_width(*trimmed.interval) <= kMuchNarrower * log_width(*known);
  return is_narrower ? std::optional(trimmed) : std::nullopt;
}

}  // namespace

std::string trimmed_ratios_line(const Study& study, const Comparison& comparison,
                                const std::vector<RowFacts>& facts, double spread) {
  std::vector<const Row*> rows;
  for (const RowFacts& each : facts) rows.push_back(each.row);
  const std::vector<std::string> names = point_names(study, rows);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].speed_up || facts[i].speed_up->base == i) continue;
    const Row& base = study.rows[facts[i].speed_up->base];
    const auto ratio = trimmed_speed_up(base, facts[i], comparison.rates, spread);
    if (!ratio) continue;
    texts.push_back(fmt::format("{}: speed-up {:.2f} [{:.2f}, {:.2f}]", names[i], ratio->value,
                                ratio->interval->low, ratio->interval->high));
  }
  if (texts.empty()) return "";
  const std::size_t all = texts.size();
  texts.resize(std::min(all, kMostTrimmed));
  if (all > texts.size()) texts.push_back(fmt::format("{} more", all - texts.size()));
  return "without the fastest and the slowest runs of each row (trimmed means): " +
         join(texts, "; ");
}

}  // namespace paceline
