// Level shifts in a series of sessions: when did it change, by how much, and how sure is that.
//
// A level is a stretch of at least kFewestInLevel sessions that differ by noise only. A shift
// stands between two levels. It must reject both explanations that are none:
//   one level: circular binary segmentation with a permutation test. The largest of the t
//   statistics
//     of all stretches against the rest is compared with its values in shuffled series. If nothing
//     changed and sessions are independent, a series has a shift with at most the probability
//     `level`, whatever the distribution of the noise. Olshen, Venkatraman, Lucito and Wigler,
//     Biostatistics 5(4), 2004. E-divisive (Matteson and James, JASA 109, 2014) does the same with
//     energy distances, which cost a factor of the length more;
//   a steady drift: the step must stand out (p < kDriftLevel) of a straight line through the
//     sessions near it.
// Before that, sessions far from their neighbours are set aside as outlying (Hampel's filter: more
// than kOutlying times the noise from the median of seven), so a spike of up to three sessions is
// no shift; and the effect of weekdays is removed where it is significant. The noise comes from
// differences of neighbours, which shifts and drifts hardly affect. If neighbours resemble each
// other, all statistics are divided by the root of (1 + r) / (1 - r).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

constexpr std::size_t kFewestInLevel = 4;
constexpr std::size_t kFewestInSeries = 20;  // find_level_shifts() needs as many sessions
constexpr double kDriftLevel = 0.001;
constexpr double kOutlying = 5;

struct SeriesLevel {
  std::size_t begin = 0, end = 0;    // sessions, end excluded
  double mean = 0;                   // of the sessions that are not outlying, without weekdays
  std::optional<Interval> interval;  // 95 %
};

struct LevelShift {
  std::size_t at = 0;  // the first session of the new level
  // The same, where the data allow others: those whose likelihood is at least a twentieth.
  std::size_t earliest = 0, latest = 0;
  double size = 0;  // after - before, without the drift
  std::optional<Interval> interval;
};

struct SeriesDrift {
  double per_day = 0;
  Interval interval;
};

struct LevelShifts {
  std::vector<SeriesLevel> levels;  // in order; all sessions
  std::vector<LevelShift> shifts;   // between them
  std::vector<std::size_t> outlying;
  // Mean deviations by weekday, Monday first; empty: no pattern was found.
  std::optional<std::array<double, 7>> weekdays;
  std::optional<SeriesDrift> drift;  // within levels, if p < kDriftLevel
  double noise = 0;                  // standard deviation of a session about its level
  double resemblance = 0;            // correlation of neighbours, where it was significant
};

// `days` since 1970 (in order), `values` on a scale on which noise adds: logarithms of times. Both
// have the same length, at least kFewestInSeries. The same input gives the same result.
LevelShifts find_level_shifts(std::span<const double> days, std::span<const double> values,
                              double level);

// The split of a few values into two levels of at least two that explains them best, for series too
// short for permutations. Needs 4 values.
struct BestSplit {
  std::size_t at = 0;
  std::size_t splits = 1;  // how many were tried
  Difference difference;   // after - before, with pooled variance
};
BestSplit best_split(std::span<const double> values);

}  // namespace paceline
