#include <algorithm>
#include <numeric>
#include <span>

#include "engine/train/outcome.h"

namespace paceline {

void gather_steps(Communicator& communicator, const std::vector<StepTimes>& mine,
                  std::vector<RankTimes>& ranks, std::size_t piece_bytes) {
  const std::size_t most = std::max<std::size_t>(1, piece_bytes / sizeof(StepTimes) / ranks.size());
  std::vector<StepTimes> piece(std::min(most, mine.size()) * ranks.size());
  for (std::size_t first = 0; first < mine.size(); first += most) {
    const std::size_t count = std::min(most, mine.size() - first);
    communicator.all_gather(&mine[first], count * sizeof(StepTimes), piece.data());
    if (communicator.rank() != 0) continue;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const StepTimes* steps = &piece[r * count];
      ranks[r].steps.insert(ranks[r].steps.end(), steps, steps + count);
    }
  }
}

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
  const std::vector<double>& epochs = outcome.timing.epoch_seconds;
  const double all = std::accumulate(epochs.begin(), epochs.end(), 0.0);
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
