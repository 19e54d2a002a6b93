// Each row of a study against its base.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

// What rows are compared with.
struct Base {
  enum Kind {
    matched,  // one replica, same backend and axes, and the same CPUs: of a task where replicas are
              // GPUs, of a replica where they are cores
    best,     // the fastest row of one replica of the same system, whatever its CPUs or backend
    setting,  // the row that has `value` of `axis`, and is the same otherwise
  };

  Kind kind = matched;
  std::string axis, value;  // of a setting: "bucket_mb", "8"

  Base(Kind rule) : kind(rule) {}  // NOLINT: a kind is a base
  Base(std::string name, std::string text)
      : kind(setting), axis(std::move(name)), value(std::move(text)) {}

  std::string text() const;  // "matched", "best", "bucket_mb=8"
  bool operator==(const Base&) const = default;
};

struct SpeedUp {
  std::size_t base = 0;  // index of the base's row
  Ratio ratio;           // of times, or of rates where the work differs
  // Speed-up times the base's replicas over the row's. None where a setting is the base and both
  // have the same number of replicas.
  std::optional<double> efficiency;
  // Karp and Flatt, CACM 33(5), 1990: (1/S - 1/p) / (1 - 1/p), the serial share that would
  // explain the speed-up S of p replicas. None for p = 1, weak scaling and times to a goal.
  std::optional<double> karp_flatt;
};

struct Comparison {
  Base base = Base::matched;
  bool rates = false;                             // rates are compared, not times
  std::vector<std::optional<SpeedUp>> speed_ups;  // a row each; none where there is no base
  std::vector<bool> best_of_size;                 // the fastest row of its system and gpus
  std::vector<std::string> notes;                 // bases that are missing or were borrowed
};

// False where a run was to end with a goal and did not reach it: its time says nothing.
bool reached_goal(const Row& row);

// Seconds of a row's runs, or where `rates` seconds per sample: the geometric mean.
Estimate mean_cost(const Row& row, bool rates);

// Positive values of a row's runs as what an interval is made of: a value a run, or where sessions
// are pooled the geometric mean of each.
std::vector<double> units_of(const Row& row,
                             const std::function<std::optional<double>(const Run&)>& value);

// The mean cost of `base` over that of `row`: paired if both have the same rounds, or where
// sessions are pooled the same sessions (paired_means() of contrast.h), Welch's otherwise. Without
// an interval where a row is tainted.
Ratio ratio_of(const Row& base, const Row& row, bool rates);

double karp_flatt(double speed_up, double replicas);

// How many decimals show a fraction: three, or of small ones three digits, as of 4096 replicas
// 0.0001 is much.
int fraction_digits(double fraction);

Comparison compare(const Study& study, const Base& base);

// Names of what differs between the rows, as --base and --only take them: parameters, "backend",
// "gpus", and the CPUs of a replica (cores) or of a task (GPUs).
std::vector<std::string> differing(const Study& study);

// Of a study of one size whose rows differ in one thing: its first value. Else `matched`.
Base default_base(const Study& study);

// Throws usage where a setting is in no row of any study, or in all.
void check_base(const std::vector<Study>& studies, const Base& base);

}  // namespace paceline
