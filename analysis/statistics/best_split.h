// The split of a few values into two levels of at least two that explains them best, for series too
// short for permutations.
#pragma once

#include <cstddef>
#include <span>

#include "analysis/statistics/statistics.h"

namespace paceline {

constexpr std::size_t kFewestForResemblance = 8;

struct BestSplit {
  std::size_t at = 0;
  std::size_t splits = 1;            // how many were tried
  Difference difference;             // after - before, with pooled variance
  double plausible_resemblance = 0;  // from kFewestForResemblance values on

  // Times the number of splits; of independent sessions, or as far as they may resemble each other.
  double p_if_independent() const;
  double p_value() const;
  std::size_t sessions() const { return splits + 3; }
};
// Needs 4 values.
BestSplit best_split(std::span<const double> values);
// The least size of a shift in the middle of as many values that is found, at p < level, with a
// probability of kDetectablePower.
double detectable_split(const BestSplit& split, double level);

}  // namespace paceline
