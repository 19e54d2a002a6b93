#include "engine/facts/step_times.h"

#include <algorithm>
#include <span>

#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

PhaseSeconds sum_phases(const RankTimes& rank) {
  std::array<double, kPhases> sums{};
  PhaseSeconds row;
  for (const StepTimes& times : rank.steps) {
    for (std::size_t p = 0; p < kPhases; ++p) sums[p] += static_cast<double>(times.seconds[p]);
    row.step += static_cast<double>(times.total);
  }
  const auto of = [&](Phase phase) { return sums[static_cast<std::size_t>(phase)]; };
  row.input = of(Phase::input);
  row.forward = of(Phase::forward);
  row.backward = of(Phase::backward);
  row.communication = of(Phase::communication);
  row.update = of(Phase::update);
  row.other = of(Phase::other);
  row.communication_hidden = std::max(0.0, rank.communication_busy - row.communication);
  return row;
}

namespace {

constexpr std::array<Phase, 4> kWork = {Phase::input, Phase::forward, Phase::backward,
                                        Phase::update};

using Steps = std::span<const StepTimes>;

double compute_mean(Steps steps, Phase phase) {
  double sum = 0;
  for (const StepTimes& step : steps) {
    sum += static_cast<double>(step.seconds[static_cast<std::size_t>(phase)]);
  }
  return sum / static_cast<double>(steps.size());
}

double mean_work(Steps steps) {
  return summed(kWork, [&](Phase phase) { return compute_mean(steps, phase); });
}

double mean_total(Steps steps) {
  double sum = 0;
  for (const StepTimes& step : steps) sum += static_cast<double>(step.total);
  return sum / static_cast<double>(steps.size());
}

double median_without(std::vector<double> values, std::size_t left_out) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(left_out));
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// What `measure` gives for rank `rank` beyond the median of the others.
template <typename Measure>
double compute_excess(const std::vector<Steps>& ranks, std::size_t rank, const Measure& measure) {
  const std::vector<double> values = mapped(ranks, measure);
  return values[rank] - median_without(values, rank);
}

std::size_t slower_stretches(const std::vector<Steps>& ranks, std::size_t rank) {
  std::size_t slower = 0;
  const std::size_t steps = ranks.front().size();
  for (std::size_t i = 0; i < kStragglerStretches; ++i) {
    const std::size_t begin = steps * i / kStragglerStretches;
    const std::size_t count = steps * (i + 1) / kStragglerStretches - begin;
    const auto work = [&](Steps all) { return mean_work(all.subspan(begin, count)); };
    if (compute_excess(ranks, rank, work) > 0) ++slower;
  }
  return slower;
}

}  // namespace

std::optional<StragglerFacts> find_straggler(const std::vector<RankTimes>& times,
                                             std::size_t warmup) {
  if (times.size() < 2) return std::nullopt;
  std::vector<Steps> ranks;
  for (const RankTimes& rank : times) {
    const Steps steps(rank.steps);
    if (steps.size() != times.front().steps.size() ||
        steps.size() < warmup + kStragglerLeastSteps) {
      return std::nullopt;
    }
    ranks.push_back(steps.subspan(warmup));
  }
  const std::vector<double> work = mapped(ranks, mean_work);
  const auto slowest =
      static_cast<std::size_t>(std::max_element(work.begin(), work.end()) - work.begin());
  StragglerFacts straggler{.rank = static_cast<int>(slowest)};
  const double all = compute_excess(ranks, slowest, mean_work);
  straggler.excess_seconds_per_step = all;
  straggler.share_of_step = all / mean_total(ranks[slowest]);
  if (!(*straggler.share_of_step >= kStragglerLeastShare)) return std::nullopt;
  if (slower_stretches(ranks, slowest) + 1 < kStragglerStretches) return std::nullopt;
  double most = 0;
  for (const Phase phase : kWork) {
    const auto measure = [phase](Steps steps) { return compute_mean(steps, phase); };
    const double excess = compute_excess(ranks, slowest, measure);
    if (excess <= most) continue;
    most = excess;
    straggler.phase = kPhaseNames[static_cast<std::size_t>(phase)];
  }
  return straggler;
}

}  // namespace paceline
