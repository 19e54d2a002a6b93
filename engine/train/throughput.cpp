#include "engine/train/throughput.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace paceline {

namespace {

double compute_total(std::span<const StepTimes> steps) {
  return std::accumulate(steps.begin(), steps.end(), 0.0,
                         [](double sum, const StepTimes& step) { return sum + step.total; });
}

}  // namespace

std::size_t count_warmup(const TrainingOutcome& outcome) {
  return outcome.steps > 4 * kWarmupSteps ? kWarmupSteps : 0;
}

double samples_per_second(const TrainingOutcome& outcome) {
  const double all =
      std::accumulate(outcome.epoch_seconds.begin(), outcome.epoch_seconds.end(), 0.0);
  const std::size_t warmup = count_warmup(outcome);
  if (warmup == 0) return static_cast<double>(outcome.samples) / all;
  double seconds = 0;
  for (const RankTimes& rank : outcome.ranks) {
    const std::span<const StepTimes> steps = rank.steps;
    // Steps and epochs may be timed by unlike clocks: never less than the steps that count.
    seconds = std::max(
        {seconds, all - compute_total(steps.first(warmup)), compute_total(steps.subspan(warmup))});
  }
  return static_cast<double>(outcome.samples - outcome.warmup_samples) / seconds;
}

}  // namespace paceline
