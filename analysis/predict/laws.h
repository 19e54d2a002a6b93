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

#include <vector>

#include "analysis/study/scaling.h"

namespace paceline {

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

// A law with its coefficients, none of them negative (nonnegative_fit.h).
class FittedLaw {
 public:
  FittedLaw(Law law, const std::vector<SizedCost>& points);  // of distinct sizes; not empty

  double at(double replicas) const;
  const char* name() const { return law_.name; }

 private:
  Law law_;
  std::vector<double> coefficients_;
};

}  // namespace paceline
