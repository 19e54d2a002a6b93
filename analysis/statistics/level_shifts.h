// Level shifts in a series of sessions: when did it change, by how much, and how sure is that.
//
// A level is a stretch of at least kFewestInLevel sessions that differ by noise only. A shift
// stands between two levels. It must reject all explanations that are none:
//   one level: circular binary segmentation with a permutation test (stretches.h). Olshen,
//     Venkatraman, Lucito and Wigler, Biostatistics 5(4), 2004. E-divisive (Matteson and James,
//     JASA 109, 2014) does the same with energy distances, which cost a factor of the length more;
//   a spike: one to three sessions that explain more than any level are outlying;
//   sessions that resemble their neighbours, as far as the series cannot exclude it: the test is
//     repeated with autoregressive series. What does not pass is `possible`;
//   noise that changes: where differences of neighbours shift (the same test on the ranks of
//     their absolute values), sessions are weighted by their noise;
//   a steady drift: the step must stand out (p < kDriftLevel) of a straight line through the
//     sessions near it;
//   what changes without a date (undated.h): it is taken out of the series, and shifts are looked
//     for again. So is a step of which the date may be any of a tenth of the sessions.
// The effect of weekdays is removed before, where it is significant.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/statistics/stretches.h"
#include "analysis/statistics/undated.h"

namespace paceline {

constexpr std::size_t kFewestInSeries = 20;  // find_level_shifts() needs as many sessions
constexpr double kDriftLevel = 0.001;

struct SeriesLevel {
  std::size_t begin = 0, end = 0;    // sessions, end excluded
  double mean = 0;                   // of the sessions that are not outlying, without weekdays
  std::optional<Interval> interval;  // 95 %
};

struct LevelShift {
  std::size_t at = 0;  // the first session of the new level
  // The same, where the data allow others: see StepDates.
  std::size_t earliest = 0, latest = 0;
  double size = 0;  // after - before
  // The levels on that session, with the drift, and with what has no date.
  double before = 0, after = 0;
  std::optional<Interval> interval;  // of the size
};

struct SeriesDrift {
  double per_day = 0;
  Interval interval;
};

// Sessions [begin, end) of equal noise.
struct NoiseLevel {
  std::size_t begin = 0, end = 0;
  double noise = 0;  // standard deviation of a session about its level
};

struct LevelShifts {
  std::vector<SeriesLevel> levels;  // in order; all sessions
  double now = 0;                   // the level on the last session
  std::vector<LevelShift> shifts;   // between them
  // Would be shifts if sessions were independent. Levels are without them.
  std::vector<LevelShift> possible;
  std::vector<UndatedChange> undated;  // which are no shifts. Levels are means with them
  std::vector<std::size_t> outlying;
  // Mean deviations by weekday, Monday first; empty: no pattern was found.
  std::optional<std::array<double, 7>> weekdays;
  std::optional<SeriesDrift> drift;      // within levels, if p < kDriftLevel
  std::vector<NoiseLevel> noise_levels;  // in order; empty: the same noise throughout
  double noise = 0;                      // of the last sessions, as in NoiseLevel
  double resemblance = 0;                // correlation of neighbours, where it was significant
  double plausible_resemblance = 0;      // the largest that the sessions do not make unlikely
  // The least size of one shift in the middle of the series that is found with a probability of
  // kDetectablePower.
  double detectable = 0;
};

// `days` since 1970 (in order), `values` on a scale on which noise adds: logarithms of times. Both
// have the same length, at least kFewestInSeries. The same input gives the same result. Where
// nothing changed, the probability that there are `shifts` is at most `level`.
LevelShifts find_level_shifts(std::span<const double> days, std::span<const double> values,
                              double level);

// Changes of level by binary segmentation: each part is tested by itself (stretches.h).

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

// The split of a few values into two levels of at least two that explains them best, for series too
// short for permutations.

constexpr std::size_t kFewestForResemblance = 8;

struct BestSplit {
  std::size_t at = 0;
  std::size_t splits = 1;            // how many were tried
  Difference difference;             // after - before, with pooled variance
  double plausible_resemblance = 0;  // from kFewestForResemblance values on

  // Times the number of splits; of independent sessions, or as far as they may resemble each other.
  double p_if_independent() const;
  double p_value() const;
  std::size_t sessions() const { return splits + 3; }
};
// Needs 4 values.
BestSplit best_split(std::span<const double> values);
// The least size of a shift in the middle of as many values that is found, at p < level, with a
// probability of kDetectablePower.
double detectable_split(const BestSplit& split, double level);

std::size_t weekday(double day);  // 0: Monday; of a day since 1970
// Deviations from the weeks around, by weekday, if their differences are significant (one-way
// analysis of variance).
std::optional<std::array<double, 7>> weekday_effects(std::span<const double> days,
                                                     const std::vector<double>& values);

}  // namespace paceline
