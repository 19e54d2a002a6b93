// Replays the events of training steps: what ranks compute, and all-reduces bucket by bucket.
//
//   compute lane : input | forward | backward .. G0 .. G1 | wait R0, update 0 | wait R1, update 1
//   comm lane    :                          after G0: sum 0 | after G1: sum 1
//
// A sum begins when the last rank has the gradients and the sum before has ended. Each rank begins
// its next step when it has ended this one.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/random.h"
#include "results/step_samples.h"

namespace paceline {

struct BucketEvent {
  double ready = 1;        // share of backward that has passed when its gradients are final
  double update = 1;       // its share of the update
  double sum_seconds = 0;  // of its all-reduce
};

class StepReplay {
 public:
  // `overlap`: sums begin while backward runs, else after it. `joint`: the first update waits for
  // all sums (clipping by the norm).
  StepReplay(std::size_t ranks, std::vector<BucketEvent> buckets, bool overlap, bool joint = false);

  // Seconds of one step; all steps add up to the end of the last rank's last one. `ranks`: what
  // each rank computes; its `communication` is ignored.
  double step(const std::vector<StepSeconds>& ranks);

 private:
  std::vector<BucketEvent> buckets_;
  bool overlap_, joint_;
  std::vector<double> at_;  // of each rank: where its next step begins
  double end_ = 0;          // of the last rank's last step
  std::vector<double> done_;
};

// Draws what p ranks compute in a step from the steps of the ranks that were measured.
//
// A simulated rank draws from one measured rank, so lasting differences stay. Measured ranks may be
// slow together (a busy machine) or each for itself. With the correlation c of their work in the
// same step, a rank's work is
//   mean + sqrt(c) d + sqrt(1 - c) (work of an own step - mean)
// where d is the ranks' mean deviation in a common step, with the variance of a rank's. So the
// variance is as measured, and the maximum over p grows as that of ranks that are so alike.

// The mean correlation of two ranks' work in the same step, 0 to 1; 0 for a lone rank.
double common_share(const std::vector<std::vector<StepSeconds>>& ranks);

class RankDraws {
 public:
  // `measured` outlives it: equal, positive numbers of steps of each rank.
  RankDraws(const std::vector<std::vector<StepSeconds>>& measured, std::uint64_t seed);

  void next(std::vector<StepSeconds>& ranks);  // fills all

 private:
  const std::vector<std::vector<StepSeconds>>& measured_;
  std::vector<double> means_;  // work of each measured rank
  double common_;
  std::vector<double> together_;  // d, of each measured step
  RandomSequence random_;
};

}  // namespace paceline
