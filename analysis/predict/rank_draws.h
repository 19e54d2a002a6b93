// Draws what p ranks compute in a step from the steps of the ranks that were measured.
//
// A simulated rank draws from one measured rank, so lasting differences stay. Measured ranks may be
// slow together (a busy machine) or each for itself. With the correlation c of their work in the
// same step, a rank's work is
//   mean + sqrt(c) d + sqrt(1 - c) (work of an own step - mean)
// where d is the ranks' mean deviation in a common step, with the variance of a rank's. So the
// variance is as measured, and the maximum over p grows as that of ranks that are so alike.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/random.h"
#include "results/step_samples.h"

namespace paceline {

// What a rank does in a step, without its waits for others.
double compute_work(const StepSeconds& step);

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
