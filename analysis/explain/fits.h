// Fits laws of scaling to a series of speed-ups, with confidence intervals.
//
// Least squares of relative errors over the speed-ups S of N > 1 replicas, because the noise of
// times is multiplicative:
//   Amdahl (AFIPS 1967)         1/S = s + (1 - s)/N: the share s of the work is serial
//   Gustafson (CACM 31, 1988)   S = N - s(N - 1): the work grows with N, weak scaling
//   USL (Gunther, 1993)         N/S = 1 + a(N - 1) + b N(N - 1): contention a, coherence b, which
//                               grows with the replicas and bends the curve down again
//
// A coefficient is a function of the means of all rows, so its error is that of their runs, and
// that of the base, which all speed-ups share (contrast.h). Where the residuals are clearly
// beyond that noise, the error is theirs. Without the noise of all rows there is no fit.
//
// The USL has two rivals, beside a contention as its own: a plateau (from some size on the speed-up
// stays the same) and a knee (from some size on each sample costs more by a constant).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/study/contrast.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

struct SpeedPoint {
  double replicas = 1, speed_up = 1;
};

// The costs of a series' rows with several replicas and of their bases.
struct SpeedUpRows {
  struct Size {
    double replicas = 2;
    std::size_t base = 0, row = 0;  // in `rows`
    int nodes = 0;                  // 0: unknown
  };
  std::vector<RowValues> rows;  // logarithms, each row once
  std::vector<Size> sizes;
  WeakEvidence doubt;  // of any row

  std::vector<SpeedPoint> points(const RowMeans& means) const;
  std::size_t count_sizes() const;  // different ones
};
SpeedUpRows speed_up_rows(const Study& study, const Comparison& comparison,
                          const ScalingSeries& series);

struct Fitted {
  Known value;     // with its 95 % interval
  double off = 0;  // largest relative deviation of the law from a speed-up
};

struct UslFit {
  Known contention, coherence;
  double off = 0;     // see Fitted
  std::string rival;  // "a plateau from 8 replicas on", if it fits clearly better
  // The number of replicas beyond which it gets slower. Only where the largest size is slower than
  // the fastest beyond noise, not only across the boundary of a node, and no rival fits better.
  std::optional<Known> peak;
};

std::optional<Fitted> fit_amdahl(const SpeedUpRows& rows);
std::optional<Fitted> fit_gustafson(const SpeedUpRows& rows);
// Needs three speed-ups of at least two sizes: two points fit two unknowns, whatever they are.
std::optional<UslFit> fit_usl(const SpeedUpRows& rows);

// Measures the cost of a component from runs in which it was switched off.

struct Counterfactual {
  std::string without;       // "communication (backend null)"
  std::string cost;          // "communication", for programs
  Judged speed_up;           // of the run without it, over the one with it
  const Row* row = nullptr;  // the one without it
};

// The rows of a study with a cost switched off: backend=null, input=synthetic, overlap=false,
// update=false. Points into the study.
class Counterfactuals {
 public:
  explicit Counterfactuals(const Study& study);

  // Those that equal `row` except for one switch. Empty if `row` itself has something switched off.
  std::vector<Counterfactual> of(const Row& row, bool rates) const;

 private:
  struct Switched {
    MatchRule rule;  // all else is equal
    std::unordered_map<PointKey, std::vector<const Row*>> rows;
  };
  std::vector<Switched> off_;  // one per switch
};

}  // namespace paceline
