// What the analysis needs of one record, read once: flat and typed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/study/origin.h"
#include "results/machine.h"
#include "results/record.h"

namespace paceline {

struct Run {
  std::string where;  // file, or file and line
  std::shared_ptr<const RunRecord> record = std::make_shared<RunRecord>();  // all it says
  std::string kind, study, point, status, reason, session, build, workload, precision, backend;
  // Published: software stack and hardware. Measured: the machine, where records of unlike ones
  // stand together. Else empty.
  std::string system;
  Machine machine;
  std::string cpu_model;                 // of the machine, where known
  std::string source, time_is, rate_is;  // published: where, and what its numbers mean
  std::vector<std::pair<std::string, std::string>> origin;  // see origin.h
  std::string command, started_at;
  bool has_probe = false;  // what the machine can do was measured beside the run
  Point parameters;
  int repeat = 1, attempt = 1, round = 0;
  bool resumed = false, oversubscribed = false, throttled = false, synthetic = false;
  bool traced = false;
  std::optional<bool> busy;  // whether others kept its CPUs busy; nothing: not recorded
  std::string busy_why;      // "18 % of the time of its CPUs went to other processes"
  bool control = false;      // never a result: see Row::controls

  int gpus = 1;
  std::optional<int> nodes, ntasks, cpus_per_task;
  bool replicas_are_cores = true;

  std::optional<double> fit_seconds, step_seconds;  // step: median, all ranks
  std::optional<double> compile_seconds;            // of fit_seconds: the choice of algorithms
  std::optional<double> samples_per_second, samples, steps;
  bool rate_is_given = false;  // by the record; else it is that of samples and fit_seconds
  std::optional<double> warmup_steps, rate_warmup_steps;  // left out of step_seconds, of the rate
  std::optional<double> batch_per_replica, global_batch;
  std::optional<double> utilization, test_accuracy;  // 0 to 1

  // Of a run that ends once an evaluation is good enough; empty: it trains all its epochs.
  std::string goal;
  bool goal_reached = false;
  std::optional<double> epochs_to_goal;

  std::vector<double> epoch_seconds;

  // Sums over ranks; the step is 0 where there are no phases.
  double phase_input = 0, phase_forward = 0, phase_backward = 0, phase_communication = 0;
  double phase_update = 0, phase_other = 0, phase_step = 0;
  int phase_ranks = 0;  // that have phases

  // Never enters an interval.
  bool tainted() const { return resumed || oversubscribed || throttled || traced; }
  std::optional<double> cpus_per_replica() const;
};

Run run_of(const Record& record);

// Whether `again` is a run of the same point made once more: in its folder, in the same session or
// as a later attempt of another call of `sweep`. Repeats of other studies have the same numbers.
bool is_retry_of(const Run& again, const Run& run);

using RunFact = std::function<std::optional<double>(const Run&)>;  // &Run::fit_seconds

}  // namespace paceline
