// Changes of level by binary segmentation: each part is tested by itself (stretches.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/statistics/stretches.h"

namespace paceline {

class Segmentation {
 public:
  Segmentation(const ScaledSeries& series, double resemblance, double level);

  std::vector<std::size_t> changes;  // first sessions of new levels, in order
  std::vector<std::size_t> spikes;   // sessions

 private:
  void split(std::vector<std::size_t> sessions);

  const ScaledSeries& series_;
  const double resemblance_, level_;
};

// Noise by session as a multiple of the usual one: where the ranks of differences of pairs of
// neighbours change. `level`: that of shifts.
// Close to a change the larger noise counts.
std::vector<double> estimate_scales(std::span<const double> values, double level);

}  // namespace paceline
