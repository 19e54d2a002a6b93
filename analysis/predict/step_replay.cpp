#include "analysis/predict/step_replay.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace paceline {

StepReplay::StepReplay(std::size_t ranks, std::vector<BucketEvent> buckets, bool overlap,
                       bool joint)
    : buckets_(std::move(buckets)),
      overlap_(overlap),
      joint_(joint),
      at_(ranks),
      done_(buckets_.size()) {}

double StepReplay::step(const std::vector<StepSeconds>& ranks) {
  // When the sum of each bucket ends.
  double lane_free = 0;  // when the communication lane can begin the next sum
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    double ready = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double share = overlap_ ? buckets_[b].ready : 1;
      ready =
          std::max(ready, at_[r] + ranks[r].input + ranks[r].forward + ranks[r].backward * share);
    }
    lane_free = done_[b] = std::max(ready, lane_free) + buckets_[b].sum_seconds;
  }
  if (joint_) std::fill(done_.begin(), done_.end(), lane_free);

  // When each rank can begin its next step.
  double end = end_;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    double& now = at_[r];
    now += ranks[r].input + ranks[r].forward + ranks[r].backward;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      now = std::max(now, done_[b]) + ranks[r].update * buckets_[b].update;
    }
    now += ranks[r].other;
    end = std::max(end, now);
  }
  return end - std::exchange(end_, end);
}

namespace {

double compute_work(const StepSeconds& step) {
  return step.input + step.forward + step.backward + step.update + step.other;
}

double mean_work(const std::vector<StepSeconds>& steps) {
  double sum = 0;
  for (const StepSeconds& step : steps) sum += compute_work(step);
  return sum / static_cast<double>(steps.size());
}

}  // namespace

// From the ranks' deviations from their means: the variance of their sum is the sum of their
// variances plus all covariances.
double common_share(const std::vector<std::vector<StepSeconds>>& ranks) {
  const auto count = static_cast<double>(ranks.size());
  if (ranks.size() < 2) return 0;
  std::vector<double> sums(ranks.front().size());
  double own = 0;
  for (const auto& steps : ranks) {
    const double mean = mean_work(steps);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const double off = compute_work(steps[s]) - mean;
      sums[s] += off;
      own += off * off;
    }
  }
  double of_sums = 0;
  for (const double sum : sums) of_sums += sum * sum;
  return own > 0 ? std::clamp((of_sums / own - 1) / (count - 1), 0.0, 1.0) : 0;
}

RankDraws::RankDraws(const std::vector<std::vector<StepSeconds>>& measured, std::uint64_t seed)
    : measured_(measured), common_(common_share(measured)), random_(seed, Stream::synthetic, 0) {
  for (const auto& steps : measured) means_.push_back(mean_work(steps));
  const auto count = static_cast<double>(measured.size());
  const double scale = std::sqrt(count * (1 + (count - 1) * common_));
  together_.resize(measured.front().size());
  for (std::size_t r = 0; r < measured.size(); ++r) {
    for (std::size_t s = 0; s < together_.size(); ++s) {
      together_[s] += (compute_work(measured[r][s]) - means_[r]) / scale;
    }
  }
}

void RankDraws::next(std::vector<StepSeconds>& ranks) {
  const auto steps = static_cast<std::uint32_t>(measured_.front().size());
  const std::uint32_t common = random_.below(steps);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::size_t from = r % measured_.size();
    const double mean = means_[from];
    StepSeconds& step = ranks[r];
    step = measured_[from][random_.below(steps)];
    const double own = compute_work(step);
    if (common_ <= 0 || own <= 0) continue;
    const double work =
        mean + std::sqrt(common_) * together_[common] + std::sqrt(1 - common_) * (own - mean);
    const double factor = std::max(0.0, work / own);
    for (double* part : {&step.input, &step.forward, &step.backward, &step.update, &step.other}) {
      *part *= factor;
    }
  }
}

}  // namespace paceline
