// Laws of scaling: what a unit of work costs on p replicas.
//
// The cost is worker-time, replicas times seconds: of a run where all sizes take the same samples,
// else of a sample. Let a step take c on one replica and an overhead o(p) on each of p.
// Batch of a replica fixed (fixed epochs, weak): a step takes c + o(p), so the cost is c + o(p).
// Global batch fixed (strong): a step takes c/p + o(p), so the cost is c + p o(p).
// A time per run, which no replica shares, is Amdahl's in every type.
//
//   law       cost, batch fixed         cost, global batch fixed   source
//   ideal     1                         1
//   Amdahl    1, p-1                    1, p-1                     Amdahl, AFIPS 1967
//   USL       1, p-1, p(p-1)            1, p-1, p(p-1)             Gunther 1993
//   log p     1, log2 p                 1, p log2 p                trees: Thakur, Rabenseifner,
//   Gropp,
//                                                                  IJHPCA 19, 2005
//   sqrt p    1, sqrt p - 1             1, p (sqrt p - 1)          a term of the normal form of
//   Calotoiu
//                                                                  et al., SC13
//   ring      1, (p-1)/p, p-1           (the USL's)                bandwidth and latency:
//   Patarasuk,
//                                                                  Yuan, JPDC 69, 2009
#pragma once

#include <optional>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/study/scaling.h"

namespace paceline {

inline constexpr double kNormal90 = 1.6449;  // two-sided quantile

struct SizedCost {
  double replicas = 1, cost = 0;  // cost > 0
};

struct Law {
  const char* name;
  std::vector<double (*)(double)> terms;
};

// Those for a type of scaling and a number of sizes. With two sizes the USL is Amdahl's, so it is
// left out: no law counts twice.
std::vector<Law> laws_for(Scaling scaling, std::size_t sizes);

// A law with its coefficients, none of them negative.
class FittedLaw {
 public:
  FittedLaw(Law law, const std::vector<SizedCost>& points);  // of distinct sizes; not empty

  double at(double replicas) const;
  const char* name() const { return law_.name; }

 private:
  Law law_;
  std::vector<double> coefficients_;
};

// Predicts the cost of a size from the costs of others by laws of scaling.
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
// laws, and far from the sizes told, is in docs/error-rates.md.

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
  // By the USL, its terms of either sign, and as far above it as the noise lets them be: a
  // coherence that the other laws outweigh. Zero if the sizes do not tell.
  double by_usl_alone(double replicas) const;
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

// Least squares of relative errors with coefficients that are not negative: costs.

// A measurement `value` > 0, the sum of the coefficients times `terms`.
struct CostPoint {
  std::vector<double> terms;  // as many for each point
  double value = 0;
  double scale = 0;  // the error is divided by it; 0: by the value
};

// Minimizes the sum of ((sum of c_i terms_i - value) / scale)^2 over c_i >= 0, by trying every set
// of coefficients that are above zero, so for a handful of terms. Of terms that the points cannot
// tell apart, the first gets all. Zeros if no term helps.
std::vector<double> nonnegative_fit(const std::vector<CostPoint>& points);

}  // namespace paceline
