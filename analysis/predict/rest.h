// What measured steps took and their replay lacks.
#pragma once

#include <vector>

namespace paceline {

// A measured size of several replicas. All are seconds of a step.
struct ComparedSize {
  double measured = 0, replayed = 0;
  double sums = 0;  // of all its all-reduces, as replayed
};

// Seconds that a replay lacks: of each step alike, or a share of its all-reduces. One of them is 0.
struct ReplayResidual {
  double fixed = 0, share_of_sums = 0;

  double seconds(double sums) const { return fixed + share_of_sums * sums; }
  // A replayed step with its rest. A rest may be negative; at least a tenth of the step stays.
  double with_rest(double replayed, double sums) const;
};

// Ranks that disturb each other in computing leave a fixed rest. Links that a benchmark alone found
// faster or slower than steps do leave a share. Of the two, the one that fits the sizes better by
// least squares; fixed where one size cannot tell.
ReplayResidual fit_residual(const std::vector<ComparedSize>& sizes);

}  // namespace paceline
