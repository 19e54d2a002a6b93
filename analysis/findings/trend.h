// What happens to the loss as replicas are added, as far as the runs can tell.
//
// Of N replicas with the speed-up S the fraction e = (N / S - 1) / (N - 1) is Karp and Flatt's.
// What it means depends on the scaling type (docs/explain.md has the algebra):
//   strong         T(N) = T(1) (e + (1 - e) / N): e of the base's time is not divided
//   fixed epochs,  the number of steps falls as 1 / N, or stays while the work grows: the time per
//   weak           step is that of the base times 1 + e (N - 1)
// So a constant e is a cost that does not grow in the former, and one that grows with every replica
// in the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/study/contrast.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

enum class TrendKind {
  slower_than_one,  // at every size
  no_loss,          // no size's loss can be told from none
  above_ideal,      // at every size N replicas are more than N times as fast
  one_size,         // there is a loss, and no second size
  steady,           // e changes by less than a tolerance
  grows,            // e of the largest size is larger than of the smallest
  falls,
  uneven,    // e of a size between differs from the smallest's, and the largest's does not
  unclear,   // the noise hides whether e changes
  unjudged,  // e goes somewhere, and too few runs tell how large the noise is
};

struct SizeOfTrend {
  int gpus = 2;
  double fraction = 0;           // e
  double added = 0;              // N / S - 1
  double efficiency = 0;         // S / N
  std::optional<Interval> loss;  // of e
};

// Rows of one base, one a size of several replicas.
struct Trend {
  TrendKind kind = TrendKind::one_size;
  Doubt doubt;                     // none: three undisturbed runs or more of every row
  std::string cpus;                // "1 CPU per replica"; empty where unknown
  std::vector<SizeOfTrend> sizes;  // ascending; not empty
  std::optional<Interval> change;  // of e, from the smallest size to the largest
};

// One for each base of the series. None where the work of the sizes is unlike or not known: runs
// that end with a goal, unknown scaling types.
std::vector<Trend> trends_of(const Study& study, const Comparison& comparison,
                             const ScalingSeries& series);

}  // namespace paceline
