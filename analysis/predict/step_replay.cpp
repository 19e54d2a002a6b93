#include "analysis/predict/step_replay.h"

#include <algorithm>
#include <limits>

namespace paceline {

StepReplay::StepReplay(std::size_t ranks, std::vector<BucketEvent> buckets, bool overlap,
                       bool joint)
    : buckets_(std::move(buckets)),
      overlap_(overlap),
      joint_(joint),
      at_(ranks),
      done_(buckets_.size()) {}

StepCost StepReplay::step(const std::vector<StepSeconds>& ranks) {
  double free = 0;  // when the communication lane is
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    double ready = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double share = overlap_ ? buckets_[b].ready : 1;
      ready =
          std::max(ready, at_[r] + ranks[r].input + ranks[r].forward + ranks[r].backward * share);
    }
    free = done_[b] = std::max(ready, free) + buckets_[b].sum_seconds;
  }
  if (joint_) std::fill(done_.begin(), done_.end(), free);

  StepCost cost;
  cost.exposed = std::numeric_limits<double>::infinity();
  double waits = 0, end = end_;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    double& now = at_[r];
    now += ranks[r].input + ranks[r].forward + ranks[r].backward;
    double wait = 0;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      wait += std::max(0.0, done_[b] - now);
      now = std::max(now, done_[b]) + ranks[r].update * buckets_[b].update;
    }
    now += ranks[r].other;
    cost.exposed = std::min(cost.exposed, wait);
    waits += wait;
    end = std::max(end, now);
  }
  cost.straggler = waits / static_cast<double>(ranks.size()) - cost.exposed;
  cost.step = end - end_;
  end_ = end;
  return cost;
}

}  // namespace paceline
