// Fits laws of scaling to a series of speed-ups, with confidence intervals.
//
// Least squares of relative errors over the speed-ups S of N > 1 replicas, because the noise of
// times is multiplicative:
// Amdahl (AFIPS 1967)         1/S = s + (1 - s)/N: the share s of the work is serial
// Gustafson (CACM 31, 1988)   S = N - s(N - 1): the work grows with N, weak scaling
//   USL (Gunther, 1993)         N/S = 1 + a(N - 1) + b N(N - 1): contention a, coherence b, which
//                               grows with the replicas and bends the curve down again
#pragma once

#include <optional>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

struct SpeedPoint {
  double replicas = 1, speed_up = 1;
};

struct Fitted {
  double value = 0;
  // 95 %, from the residuals; empty without spare degrees of freedom.
  std::optional<Interval> interval;
  double off = 0;  // largest relative deviation of the law from a speed-up
};

struct UslFit {
  Fitted contention, coherence;
  double peak = 0;  // number of replicas beyond which it gets slower; 0: never
  double off = 0;   // see Fitted
};

// Ignores points of one replica, which say nothing about a law. Empty if no other points exist.
std::optional<Fitted> fit_amdahl(const std::vector<SpeedPoint>& points);
std::optional<Fitted> fit_gustafson(const std::vector<SpeedPoint>& points);
// Needs at least two sizes, else empty.
std::optional<UslFit> fit_usl(const std::vector<SpeedPoint>& points);

std::vector<SpeedPoint> speed_points(const ScalingSeries& series);

}  // namespace paceline
