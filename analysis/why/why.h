// What a program's counterfactual runs say: speed-up, and what each cost makes of it.
//
// A run of N replicas needs c = N * seconds / samples for a sample, one alone c1. Of 100 points of
// c, efficiency is the 100 c1 / c that one alone needs, and a cost is what goes where it is taken
// away: 100 (c - c') / c. Sums, the latest rank, the shared node, what comes once an epoch and
// computing in smaller batches are steps from c to c1, so they add up to the loss. Waiting for
// data, saving and the like are part of c1, too, and a smaller batch costs more sums for a sample.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/statistics/statistics.h"

namespace paceline {

// Runs by their names as programs of the study. "alone-once" is of its records, where "alone" takes
// turns.
inline constexpr char kAsItIs[] = "as-it-is", kAlone[] = "alone", kAloneBatch[] = "alone-batch",
                      kAloneOnce[] = "alone-once", kNoSums[] = "no-sums",
                      kNoWait[] = "data-at-hand", kNoOwn[] = "no-calls", kNoSaves[] = "no-saves",
                      kThreads[] = "threads", kWorkers[] = "workers", kBuckets[] = "buckets",
                      kDropped[] = "data-dropped", kNoSyncs[] = "no-syncs",
                      kKeptBatch[] = "kept-batch";

// A batch that is divided among replicas falls to a half or less; others vary.
inline constexpr double kFalls = 0.75;

// One run as the hook measured it, over its steps after the warm-up.
struct MeasuredRun {
  int ranks = 1;
  double steps = 0, steps_in_all = 0, seconds = 0;
  double samples = 0;         // of all ranks; 0: not known
  double elements = 0;        // of all ranks' batches: numbers in tensors
  double batch = 0;           // the largest of a forward pass of a replica; 0: not known
  double others_seconds = 0;  // mean of the ranks but the slowest
  double first_seconds = 0;   // of rank 0
  double rank_0_seconds = 0;  // of rank 0 beyond others, but saving
  double epoch_seconds = 0;   // of steps in which a loader starts: beyond others
  int slowest_rank = 0;
  // Of the rank with the most.
  double wait = 0, own_seconds = 0, save_seconds = 0, sync_seconds = 0, overhead = 0;
  int saves = 0, own_calls = 0, batches = 0, ratio = 1, workers = 0;
  int threads = 1, all_cpus = 1, local_ranks = 1;
  double bucket_mb = 0;
  bool is_on_gpu = false, changes_batches = false, has_foreign_hook = false, has_sync_norm = false;
  std::string why_no_sums;           // empty: sums can be taken away
  std::vector<std::string> staying;  // collectives that it calls and no run is without
  std::string lengths;               // JSON, for the hook: of loaders that have none
  bool goes_on = false;              // after the last of these steps
  bool finds_unused = false;         // parameters, which are summed, too
  std::string program;               // that was run in turns with others; else empty
  std::vector<MeasuredRun> turns;    // of the others
  std::vector<MeasuredRun> parts;    // each of its own turns

  double batch_per_replica() const { return ratio * batch; }
  // Whether a batch that is divided among replicas is: not by chance, and not the last of an epoch.
  bool falls_below(const MeasuredRun& alone) const;
  double elements_of_sample() const { return elements / (samples > 0 ? samples : steps); }
  // In seconds: for a sample, of all replicas together; without samples for a step.
  double cost(bool by_samples) const {
    return by_samples ? ranks * seconds / samples : seconds / steps;
  }
};
// Throws input if the file is not what the hook writes.
MeasuredRun read_measured_run(const std::filesystem::path& file);

using WhyRound = std::map<std::string, MeasuredRun>;  // by program

struct WhyEvidence {
  std::vector<WhyRound> rounds;
  std::vector<std::string> notes;  // what could not be run or told, and why
  std::vector<std::string> warnings;
  std::map<std::string, std::string> tried;  // programs that change a setting: "2 workers"
  std::set<std::string> missing;             // programs of which no run could be made
  double minutes_before = 0, minutes = 0;    // its rounds, and at their end
  std::string profile;  // of its profiled steps: "51 % computing, ..."; may be empty

  bool has(const std::string& name) const {
    return std::ranges::any_of(rounds, [&](const auto& round) { return round.contains(name); });
  }
};

// Points: less than the one nobody looks at, and a cause of the other may be the first, where it is
// surely above 0.
inline constexpr double kNamed = 3, kLarge = 10;

// Of an interval, as other programs tell the noise, too; and of a study.
inline constexpr std::size_t kFewestRounds = 3, kMostCompared = 40;

enum class CauseState { found, small, open };  // surely above 0; below 10; neither yet

struct Cause {
  std::string key, name, how;
  std::map<std::size_t, double> points;  // by round
  double value = 0;
  VarianceOfOthers noise = {};  // of the points, as other programs tell it
  std::optional<Interval> interval =
      {};  // at 95 % for all causes together, at any number of rounds
  CauseState state = CauseState::open;
};

struct WhyVerdict {
  int replicas = 1;
  std::size_t rounds = 0;
  bool by_samples = true;
  std::optional<Estimate> speed_up, efficiency;  // empty: one replica alone was not measured
  std::vector<Cause> causes;                     // the largest first
  std::vector<Cause> tries;                      // of settings: what they gain
  std::optional<std::size_t> first;              // of causes
  bool none_is_large = false;                    // surely
  std::vector<Cause> with_replicas;        // found, beside a first one that is the program's own
  std::vector<std::string> may_go_before;  // names of its own that are open yet
  std::vector<std::string> rivals;         // names of causes that may be larger than the first
  double batch = 0, batch_alone = 0;       // of a replica, where it falls; else 0
  std::optional<int> late_rank;            // the slowest in all rounds
  int saves = 0, saves_without_sums = 0;
  double overhead = 0;                       // of the hook, as a share of the time
  bool is_over = false;                      // more rounds would say no more
  std::optional<std::size_t> rounds_needed;  // about, if no cause is the first yet
  bool is_decided = false;                   // and what was asked is known
};

WhyVerdict judge_why(const WhyEvidence& evidence);

// One screen. JSON: {"schema", "replicas", "rounds", "decided", "speed_up", "speed_up_low", ..,
// "efficiency", .., "first_cause", "rivals", "rounds_needed", "overhead", "title", "headline",
// "profile", "warnings", "notes", "causes":
// [{"cause", "points", "points_low", "points_high", "state", "measured_by"}]}
Document why_document(const WhyVerdict& verdict, const WhyEvidence& evidence);

}  // namespace paceline
