// Laws of scaling fitted to a series of speed-ups, with the uncertainty of what they found.
//
// Speed-ups S of N replicas, N > 1, by least squares of relative errors (noise of times is a
// factor):
//   Amdahl (AFIPS 1967)         1/S = s + (1 - s)/N: the share s of the work is not divided
//   Gustafson (CACM 31, 1988)   S = N - s(N - 1): of work that grows with N, weak scaling
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
  std::optional<Interval> interval;  // 95 %, from the residuals; none without any to spare
  double off = 0;                    // by how much the law misses a speed-up at most, as a share
};

struct UslFit {
  Fitted contention, coherence;
  double peak = 0;  // replicas beyond which it gets slower; 0: never
  double off = 0;   // as of Fitted
};

// Points of one replica say nothing of a law and are left out. Nothing without a point that does.
std::optional<Fitted> fit_amdahl(const std::vector<SpeedPoint>& points);
std::optional<Fitted> fit_gustafson(const std::vector<SpeedPoint>& points);
// Nothing unless there are two sizes.
std::optional<UslFit> fit_usl(const std::vector<SpeedPoint>& points);

std::vector<SpeedPoint> speed_points(const ScalingSeries& series);

}  // namespace paceline
