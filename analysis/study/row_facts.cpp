#include "analysis/study/row_facts.h"

#include <vector>

#include "analysis/study/contrast.h"
#include "analysis/study/energy.h"

namespace paceline {

namespace {

std::vector<double> values(const Row& row, const RunFact& fact) {
  std::vector<double> result;
  for (const Run& run : row.runs) {
    if (const auto value = fact(run)) result.push_back(*value);
  }
  return result;
}

std::optional<Estimate> share(const Row& row, const RunFact& fact) {
  const std::vector<double> all = values(row, fact);
  if (all.empty()) return std::nullopt;
  Estimate result = mean_share(all, find_stopping(row));
  if (row.tainted || row.pooled) result.interval.reset();
  return result;
}

std::optional<Estimate> divided(std::optional<Estimate> estimate, double by) {
  if (!estimate) return std::nullopt;
  estimate->value /= by;
  if (estimate->interval) {
    estimate->interval = Interval{estimate->interval->low / by, estimate->interval->high / by};
  }
  return estimate;
}

std::optional<double> share_of_step(const Row& row, double Run::*phase) {
  double seconds = 0, steps = 0;
  for (const Run& run : row.runs) {
    seconds += run.*phase;
    steps += run.phase_step;
  }
  return steps > 0 ? std::optional(seconds / steps) : std::nullopt;
}

}  // namespace

std::optional<double> mean(const Row& row, const RunFact& fact) {
  const std::vector<double> all = values(row, fact);
  if (all.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : all) sum += value;
  return sum / static_cast<double>(all.size());
}

std::optional<Estimate> estimate(const Row& row, const RunFact& fact) {
  const std::vector<double> all = unit_values(row, [&](const Run& run) { return fact(run); });
  if (all.empty()) return std::nullopt;
  Estimate result = geometric_mean(all, find_stopping(row));
  if (row.tainted) result.interval.reset();
  return result;
}

RowFacts row_facts(const Study& study, const Comparison& comparison, std::size_t index) {
  const Row& row = study.rows[index];
  const auto& speed_up = comparison.speed_ups[index];
  RowFacts facts;
  facts.row = &row;
  facts.speed_up = speed_up ? &*speed_up : nullptr;
  facts.fit_seconds = estimate(row, &Run::fit_seconds);
  facts.samples_per_second = estimate(row, &Run::samples_per_second);
  facts.samples_per_second_per_replica = divided(facts.samples_per_second, row.first().gpus);
  if (speed_up && speed_up->efficiency) {
    facts.efficiency =
        divided(speed_up->ratio.estimate, speed_up->ratio.estimate.value / *speed_up->efficiency);
  }
  if (speed_up) {
    const auto ratio = energy_efficiency(study.rows[speed_up->base], row);
    if (ratio) facts.energy_efficiency = ratio->estimate;
    if (ratio && speed_up->base == index) facts.energy_efficiency->interval.reset();
  }
  facts.step_seconds = mean(row, &Run::step_seconds);
  facts.utilization = share(row, &Run::utilization);
  facts.input_stall = share_of_step(row, &Run::phase_input);
  facts.exposed_communication = share_of_step(row, &Run::phase_communication);
  return facts;
}

}  // namespace paceline
