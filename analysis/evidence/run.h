// One record, and what the analysis derives from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "results/machine.h"
#include "results/match.h"
#include "results/run_record.h"
#include "results/store.h"

namespace paceline {

struct Reason;

// What becomes of a run for which a reason not to count holds; the stronger effects are below.
enum class Effect {
  none,         // it counts
  yields,       // it counts only where its point has no other run
  excluded,     // it does not count
  failed,       // an attempt without a result
  interrupted,  // the same, by the scheduler: its run is not lost
};

// Where and how a record was made, as texts: see engine/facts/provenance.h.

// All names that summarize_provenance() may return, in report order.
const std::vector<std::string>& origin_names();

// (name, text) pairs of what the record states.
std::vector<std::pair<std::string, std::string>> summarize_provenance(const RunRecord& record);

// A record, read through `->`, and what follows from it.
struct Run {
  std::string where;  // file, or file and line
  std::shared_ptr<const RunRecord> record = std::make_shared<RunRecord>();
  std::string precision, backend;  // of its parameters; empty: not stated
  // Published: software stack and hardware. Measured: the machine, if records of different machines
  // are shown together. Else empty.
  std::string system;
  Machine machine;
  std::vector<std::pair<std::string, std::string>> origin;  // see summarize_provenance()

  std::optional<double> step_seconds;        // the slowest rank's median, or that over many ranks
  std::optional<double> samples_per_second;  // the record's, else from samples and fit_seconds
  std::optional<double> batch_per_replica, global_batch;

  // For a run that ends when an evaluation is good enough. Empty: it trains all its epochs.
  std::string goal;
  bool goal_reached = false;
  std::optional<double> epochs_to_goal;

  // By the policy of a verb, see evidence.h. A lost run failed, and no other attempt ended well.
  Effect effect = Effect::none;
  const Reason* reason = nullptr;  // of an effect
  bool is_lost = false;

  fact::Box<PhaseSeconds> phase_sum;  // over ranks; its step is 0 without phases
  int phase_ranks = 0;                // number of ranks with phases

  Run() = default;
  Run(std::string file, std::shared_ptr<const RunRecord> facts)
      : where(std::move(file)), record(std::move(facts)) {}

  const RunRecord* operator->() const { return record.get(); }

  // Facts of the record as RunFacts.
  fact::Real fit_seconds() const { return record->fit_seconds(); }
  fact::Real samples() const;
  fact::Real steps() const;
  fact::Real utilization() const { return record->utilization; }
  fact::Real test_accuracy() const { return record->quality.test_accuracy; }

  // Of a program of the user's own, or of imported numbers: steps x global batch, if both are
  // given.
  std::optional<double> samples_by_steps() const;
  // Its time; without one, or of a result in a unit of its own, the inverse of its rate.
  std::optional<double> cost() const;

  bool has_failed() const { return effect == Effect::failed || effect == Effect::interrupted; }
  // Somebody else's numbers, with no command of ours.
  bool made_elsewhere() const { return record->kind == "published" || record->kind == "imported"; }
  bool is_busy() const { return record->provenance.machine_load.busy.value_or(false); }
  bool replicas_are_cores() const { return record->task_layout().replicas_are_cores; }
  std::optional<double> cpus_per_replica() const;
  // Those by which rows are matched: of a replica where replicas are cores, else of a task.
  std::optional<double> matched_cpus() const;
  // Geometric mean of the training losses of all epochs; empty without any, NaN if one is NaN.
  std::optional<double> mean_loss() const;
  PointKey key(const MatchRule& rule) const;
};

Run make_run(const Record& record);

// What a run's rate counts, or the unit of a result of the user's own.
struct Unit {
  std::string name = "samples";
  std::string better = {};  // of a unit of one's own, as "ns/day": "more" or "less"

  bool is_own() const { return !better.empty(); }
  std::string rate() const { return is_own() ? name : name + "/s"; }
  std::string long_rate() const { return is_own() ? name : name + " per second"; }
  std::string rate_key() const;  // "samples_per_second", "ns_per_day"
  std::string one() const { return is_own() ? "unit" : name.substr(0, name.size() - 1); }
  // What less of is faster: "s/sample", "hour/ns"; of "ns/day" "day/ns".
  std::string cost() const;
  // A rate in this unit, or back: where less is better rates are its inverse.
  double shown(double rate) const { return better == "less" ? 1 / rate : rate; }
  std::optional<Estimate> shown(std::optional<Estimate> rate) const;
  std::string text(double rate) const;  // "38,336 tokens/s"
  bool operator==(const Unit&) const = default;
};

Unit find_unit(const Run& run);

// Replaces the record, which others may read too, by a copy to be changed.
RunRecord& own_record(Run& run);

using RunFact = std::function<std::optional<double>(const Run&)>;  // &Run::fit_seconds

}  // namespace paceline
