// One record, flattened to typed fields for the analysis.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/machine.h"
#include "results/run_record.h"
#include "results/store.h"

namespace paceline {

// Where and how a record was made, as texts: see provenance.h.

// All names that summarize_provenance() may return, in report order.
const std::vector<std::string>& origin_names();

// (name, text) pairs of what the record states.
std::vector<std::pair<std::string, std::string>> summarize_provenance(const RunRecord& record);

struct Run {
  std::string where;  // file, or file and line
  std::shared_ptr<const RunRecord> record = std::make_shared<RunRecord>();  // the complete record
  std::string kind, study, point, status, reason, session, build, workload, precision, backend;
  // Published: software stack and hardware. Measured: the machine, if records of different machines
  // are shown together. Else empty.
  std::string system;
  Machine machine;
  std::string cpu_model;                 // of the machine, if known
  std::string source, time_is, rate_is;  // published: the source, and the meaning of its numbers
  std::vector<std::pair<std::string, std::string>> origin;  // see summarize_provenance()
  std::string command, started_at;
  bool has_probe = false;       // the machine's speed was measured beside the run
  std::string renamed_backend;  // its backend's name in a record of an earlier version
  bool by_program = false;      // of workload command: somebody's own program measured itself
  Point parameters;
  int repeat = 1, attempt = 1, round = 0;
  bool resumed = false, oversubscribed = false, throttled = false, synthetic = false;
  bool traced = false;
  bool sequential = false;   // the number of runs of its point depends on their results
  std::optional<bool> busy;  // other processes kept its CPUs busy; empty: not recorded
  std::string busy_why;      // "18 % of the time of its CPUs went to other processes"
  bool control = false;      // an A/A control, never a result: see Row::controls

  int gpus = 1;
  std::optional<int> nodes, ntasks, cpus_per_task;
  bool replicas_are_cores = true;

  std::optional<double> fit_seconds, step_seconds;  // step: median over all ranks
  std::optional<double> compile_seconds;            // part of fit_seconds: choice of algorithms
  std::optional<double> samples_per_second, samples, steps;
  bool rate_is_given = false;  // by the record; else computed from samples and fit_seconds
  // Excluded from step_seconds and from the rate.
  std::optional<double> warmup_steps, rate_warmup_steps;
  std::optional<double> batch_per_replica, global_batch;
  std::optional<double> utilization, test_accuracy;  // 0 to 1

  // For a run that ends when an evaluation is good enough. Empty: it trains all its epochs.
  std::string goal;
  bool goal_reached = false;
  std::optional<double> epochs_to_goal;

  std::vector<double> epoch_seconds;

  // Sums over ranks. The step is 0 without phases.
  double phase_input = 0, phase_forward = 0, phase_backward = 0, phase_communication = 0;
  double phase_update = 0, phase_other = 0, phase_step = 0;
  int phase_ranks = 0;  // number of ranks with phases

  // Excluded from all intervals.
  bool tainted() const { return resumed || oversubscribed || throttled || traced; }
  // Somebody else's numbers, with no command of ours.
  bool made_elsewhere() const { return kind == "published" || kind == "imported"; }
  std::optional<double> cpus_per_replica() const;
  // Those by which rows are matched: of a replica where replicas are cores, else of a task.
  std::optional<double> matched_cpus() const;
};

Run make_run(const Record& record);

// Whether `again` repeats `run`: same folder, and the same session or a later attempt by another
// call of `sweep`. Repeats in other studies have the same numbers.
bool is_retry_of(const Run& again, const Run& run);

using RunFact = std::function<std::optional<double>(const Run&)>;  // &Run::fit_seconds

}  // namespace paceline
