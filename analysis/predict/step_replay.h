// Replays the events of training steps: what ranks compute, and all-reduces bucket by bucket.
//
//   compute lane : input | forward | backward .. G0 .. G1 | wait R0, update 0 | wait R1, update 1
//   comm lane    :                          after G0: sum 0 | after G1: sum 1
//
// A sum begins when the last rank has the gradients and the sum before has ended. Each rank begins
// its next step when it has ended this one.
#pragma once

#include <vector>

#include "results/step_samples.h"

namespace paceline {

struct BucketEvent {
  double ready = 1;        // share of backward that has passed when its gradients are final
  double update = 1;       // its share of the update
  double sum_seconds = 0;  // of its all-reduce
};

// Seconds of a step. Of all steps, steps add up to the end of the last rank's last one.
struct StepCost {
  double step = 0;
  double exposed = 0;    // every rank waits so long: the least wait of any rank
  double straggler = 0;  // what ranks wait beyond that, on average
};

class StepReplay {
 public:
  // `overlap`: sums begin while backward runs, else after it. `joint`: the first update waits for
  // all sums (clipping by the norm).
  StepReplay(std::size_t ranks, std::vector<BucketEvent> buckets, bool overlap, bool joint = false);

  // One step. `ranks`: what each rank computes; its `communication` is ignored.
  StepCost step(const std::vector<StepSeconds>& ranks);

 private:
  std::vector<BucketEvent> buckets_;
  bool overlap_, joint_;
  std::vector<double> at_;  // of each rank: where its next step begins
  double end_ = 0;          // of the last rank's last step
  std::vector<double> done_;
};

}  // namespace paceline
