#include "engine/train/outcome.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <span>

#include "engine/core/text.h"
#include "engine/train/gather.h"

namespace paceline {

namespace {

constexpr std::size_t kBadPlaces = 5;  // number of bad samples that are named

InputCounts sum_counts(Communicator& communicator, const InputCounts& mine) {
  auto sums = to_numbers(mine);
  sum_over_ranks(communicator, sums);
  return from_numbers<InputCounts>(sums);
}

// Ranks may have met the same bad samples.
std::set<std::size_t> gather_bad(Communicator& communicator, const std::vector<std::size_t>& mine) {
  std::set<std::size_t> numbers;
  for (const auto& rank : gather(communicator, mine)) numbers.insert(rank.begin(), rank.end());
  return numbers;
}

double compute_total(std::span<const StepTimes> steps) {
  return std::accumulate(steps.begin(), steps.end(), 0.0,
                         [](double sum, const StepTimes& step) { return sum + step.total; });
}

}  // namespace

void gather_input(Communicator& communicator, const DatasetPair& data, bool counts_caches,
                  InputFacts& input) {
  for (auto* counts : {&input.counts, &input.first_epoch, &input.evaluation}) {
    *counts = sum_counts(communicator, counts->value_or(InputCounts{}));
  }
  std::array<double, 2> kept{};
  input.bad_samples = 0;
  for (const Dataset* set : {&data.train, &data.test}) {
    if (!set->store) continue;
    if (counts_caches) {
      kept[0] += static_cast<double>(set->store->cached_bytes_in_memory());
      kept[1] += static_cast<double>(set->store->cached_bytes_in_file());
    }
    const auto bad = gather_bad(communicator, set->store->bad_samples());
    *input.bad_samples += static_cast<std::int64_t>(bad.size());
    for (const std::size_t i : bad) {
      if (input.bad_places.size() < kBadPlaces) input.bad_places.push_back(set->store->where(i));
    }
  }
  sum_over_ranks(communicator, kept);
  input.cached_bytes = static_cast<std::int64_t>(kept[0]);
  input.cached_in_file_bytes = static_cast<std::int64_t>(kept[1]);
}

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
