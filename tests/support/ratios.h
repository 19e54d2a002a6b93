// Ratios with their intervals, as tables make them of differences of logarithms.
#pragma once

#include "analysis/statistics/statistics.h"

namespace paceline {

// exp(mean) of the log ratios of pairs.
inline Ratio paired_ratio(std::span<const double> log_ratios) {
  const Estimate estimate = as_factor(paired_difference(log_ratios));
  return {estimate, estimate.interval ? RatioKind::paired : RatioKind::single};
}

// Geometric mean of `above` over that of `below`, by Welch's interval on logarithms.
inline Ratio independent_ratio(std::span<const double> above, std::span<const double> below) {
  const Estimate estimate = as_factor(independent_difference(logarithms(above), logarithms(below)));
  return {estimate, estimate.interval ? RatioKind::welch : RatioKind::single};
}

}  // namespace paceline
