// Predicts the cost of a size from the costs of others by laws of scaling (laws.h).
//
// Each law is fitted to all sizes but the largest and judged by its error e there, in logarithms.
// Then it is fitted to all sizes. The prediction is the weighted geometric mean of the laws, with
// the weights 1 / (e^2 + s^2), s = 0.1: a law misses the next size by about a tenth whatever one
// held-out size says (docs/predict.md has where s is from). No point is seen that is predicted.
//
// The interval is normal in logarithms, with the variance
//   v = (weighted variance of the laws) + (r d)^2 + (noise of the runs)^2
// where d is the distance to the nearest size in doublings, and r is what published series miss a
// doubling by: 0.025, and 0.08 with two sizes, where no law was judged. What it holds of exact
// laws, and far from the sizes told, is in docs/predict.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/laws.h"
#include "analysis/statistics/statistics.h"

namespace paceline {

constexpr double kPredictionConfidence = 0.90;

struct LawWeight {
  FittedLaw law;
  double error = 0;   // of the held-out size: predicted over measured cost, minus 1
  double weight = 0;  // of all laws: 1
};

class Forecast {
 public:
  // Sizes are distinct, in increasing order, and at least two. `noise`: the standard error of the
  // logarithm of a cost.
  Forecast(std::vector<SizedCost> points, Scaling scaling, double noise = 0);

  double at(double replicas) const;
  Interval interval(double replicas) const;  // nominal 90 % of published series
  const std::vector<LawWeight>& laws() const { return laws_; }

 private:
  std::vector<SizedCost> points_;
  double noise_;
  std::vector<LawWeight> laws_;
};

// The error of the same procedure at the largest size, told only the smaller ones: predicted over
// measured cost, minus 1. With one smaller size it can only predict ideal scaling. Empty with fewer
// than two sizes.
std::optional<double> held_out_error(std::vector<SizedCost> points, Scaling scaling);

}  // namespace paceline
