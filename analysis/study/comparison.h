// Compares each row of a study with its base.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/evidence/standing.h"
#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

// The base of a comparison.
struct Base {
  enum Kind {
    // One replica, same backend, axes and CPUs: per task if replicas are GPUs, per replica if they
    // are cores.
    matched,
    best,      // the fastest one-replica row of the same system, with any CPUs or backend
    smallest,  // as matched, but of the fewest replicas that a row of the same kind has
    // The row with `value` of `axis` that is otherwise equal. Of axis gpus or nodes: as smallest,
    // but of that size. Of several rows with these nodes, the one of most replicas.
    setting,
  };

  Kind kind = matched;
  std::string axis, value;  // for kind setting: "bucket_mb", "8"

  Base(Kind rule) : kind(rule) {}  // NOLINT: a kind is a base
  Base(std::string name, std::string text)
      : kind(setting), axis(std::move(name)), value(std::move(text)) {}

  // False if rows are compared by what they do, and not by their sizes.
  bool compares_sizes() const { return kind != setting || axis == "gpus" || axis == "nodes"; }
  std::string text() const;  // "matched", "best", "smallest", "bucket_mb=8"
  bool operator==(const Base&) const = default;
};

// Whether a row is faster than its base: by the interval of the ratio. Rows of the base's own size,
// which differ in a setting, are tested together (Holm).
enum class SpeedVerdict { unjudged, faster, slower, cannot_tell };

struct SpeedUp {
  std::size_t base = 0;  // index of the base row
  Ratio ratio;           // of times, or of rates if the work differs
  double ideal = 1;      // the row's replicas over the base's
  // The speed-up over the ideal one. Empty if the base is another setting of the same size.
  std::optional<double> efficiency;
  // Karp and Flatt, CACM 33(5), 1990: (1/S - 1/p) / (1 - 1/p), the serial fraction that would
  // explain the speed-up S of p replicas, with the interval of S transformed. With a base of k
  // replicas p is the row's replicas over k, and the fraction is one of the base's time: k replicas
  // count as one processor. Empty for p <= 1, weak scaling and times to a goal.
  std::optional<Estimate> karp_flatt;
  // Beside its base; where some of its runs are far worse than those of the row that trained best,
  // beside that one.
  Standing standing;
  SpeedVerdict verdict = SpeedVerdict::unjudged;  // unjudged: also if the standing bars it
};

struct Comparison {
  Base base = Base::matched;
  bool rates = false;                             // compares rates, not times
  std::vector<std::optional<SpeedUp>> speed_ups;  // one per row; empty: no base
  std::vector<bool> best_of_size;  // the fastest row of its system and number of replicas
  // Each row beside the one that trained best of its system, and of its size where the work grows.
  std::vector<Standing> among_all;
  std::vector<std::string> notes;  // missing and substituted bases
};

// False if a run missed its goal: its time is then meaningless.
bool reached_goal(const Row& row);

// Geometric mean over a row's runs: seconds, or with `rates` seconds per sample.
Estimate mean_cost(const Row& row, bool rates);

// The values behind an interval: one positive value per run, or per session (geometric mean) if
// sessions are pooled.
std::vector<double> unit_values(const Row& row,
                                const std::function<std::optional<double>(const Run&)>& value);

// The mean cost of `base` over that of `row`, within the sessions that both have. Paired if they
// have the same rounds (pooled: sessions; see paired_means() in contrast.h), else Welch's. No
// interval if either row is tainted, or if they have no common session.
Ratio compute_ratio(const Row& base, const Row& row, bool rates);

Comparison compare(const Study& study, const Base& base);

// The last parts of compare() (verdicts.cpp): standings, and with these the verdicts.
void judge_standings(const Study& study, Comparison& comparison);
void judge_speeds(const Study& study, Comparison& comparison);

// Names of everything in which the rows differ, as --base and --only accept them: parameters,
// "backend", "gpus", and the CPUs per replica (cores) or per task (GPUs).
std::vector<std::string> differing(const Study& study);

// For a study of one size: its reference if it has several programs, or the first value of the only
// parameter in which its rows differ. Else `matched`.
Base default_base(const Study& study);

// Throws usage if a setting is in no row of any study, or in all rows.
void check_base(const std::vector<Study>& studies, const Base& base);

}  // namespace paceline
