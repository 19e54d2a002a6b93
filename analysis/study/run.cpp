#include "analysis/study/run.h"

#include <algorithm>
#include <filesystem>

#include "engine/core/text.h"

namespace paceline {

namespace {

std::optional<double> median_step(const RunRecord& record) {
  if (record.ranks && record.ranks->step_seconds) return record.ranks->step_seconds->max.p50;
  std::optional<double> slowest;
  for (const StepQuantiles& rank : record.timing.step_seconds) {
    if (rank.p50) slowest = std::max(slowest.value_or(0), *rank.p50);
  }
  return slowest;
}

// None where one of them is none.
std::vector<double> list_epochs(const Timing& timing) {
  const auto positive = [](double seconds) { return seconds > 0; };
  const std::vector<double>& all = timing.epoch_seconds;
  return std::all_of(all.begin(), all.end(), positive) ? all : std::vector<double>{};
}

void add_phases(Run& run, const PhaseSeconds& each, int ranks) {
  run.phase_input += ranks * each.input;
  run.phase_forward += ranks * each.forward;
  run.phase_backward += ranks * each.backward;
  run.phase_communication += ranks * each.communication;
  run.phase_update += ranks * each.update;
  run.phase_other += ranks * each.other;
  run.phase_step += ranks * each.step;
  run.phase_ranks += ranks;
}

void add_phases(Run& run, const RunRecord& record) {
  for (const PhaseSeconds& rank : record.phases) add_phases(run, rank, 1);
  if (!record.ranks || !record.ranks->phases) return;
  add_phases(run, record.ranks->phases->mean, record.ranks->count);
}

void add_goal(Run& run, const std::optional<GoalFacts>& until) {
  if (!until || until->goal.empty()) return;
  run.goal = until->goal;
  run.goal_reached = until->reached.value_or(false);
  if (run.goal_reached) run.epochs_to_goal = until->epochs;
}

std::optional<double> real(const std::optional<std::int64_t>& count) {
  return count ? std::optional(static_cast<double>(*count)) : std::nullopt;
}

// Of batch per replica, global batch and rate, what follows from the others.
void fill_in(Run& run) {
  const double batches = run.gpus * run.parameters.real("gradient_accumulation_steps").value_or(1);
  if (!run.global_batch && run.batch_per_replica) {
    run.global_batch = *run.batch_per_replica * batches;
  }
  if (!run.batch_per_replica && run.global_batch) {
    run.batch_per_replica = *run.global_batch / batches;
  }
  if (!run.samples_per_second && run.samples && run.fit_seconds) {
    run.samples_per_second = *run.samples / *run.fit_seconds;
  }
}

std::string describe_system(const Provenance& made) {
  return made.stack + (made.stack.empty() || made.hardware.empty() ? "" : ", ") + made.hardware;
}

}  // namespace

std::optional<double> Run::cpus_per_replica() const {
  if (!cpus_per_task) return std::nullopt;
  return static_cast<double>(*cpus_per_task) * ntasks.value_or(1) / gpus;
}

std::optional<double> Run::matched_cpus() const {
  if (replicas_are_cores) return cpus_per_replica();
  return cpus_per_task ? std::optional<double>(*cpus_per_task) : std::nullopt;
}

Run make_run(const Record& record) {
  const Provenance& made = record->provenance;
  const Timing& timing = record->timing;
  const Throughput& rate = record->throughput;
  Run run;
  run.where = record.where();
  run.record = record.facts();
  run.kind = record->kind;
  run.study = record->study;
  run.point = record->point;
  run.status = record->status;
  run.reason = record->reason;
  run.session = record->session;
  run.build = record->build();
  run.workload = record->workload;
  run.parameters = record->parameters;
  run.precision = run.parameters.text("precision").value_or("");
  run.backend = run.parameters.text("backend").value_or("");
  run.renamed_backend = record->renamed_backend;
  run.system = describe_system(made);
  run.machine = identify_machine(record);
  run.cpu_model = made.cpu_model;
  run.source = made.source;
  run.time_is = made.time_is;
  run.rate_is = made.rate_is;
  run.origin = summarize_provenance(*record);
  run.has_probe = record->probe.flops_per_second.has_value();
  run.by_program = made.program.has_value();
  run.command = made.command;
  run.started_at = made.started_at;
  run.repeat = record->repeat;
  run.attempt = record->attempt;
  run.round = record->round;
  run.resumed = record->flags.resumed;
  run.oversubscribed = record->flags.oversubscribed;
  run.throttled = record->flags.throttled;
  run.busy = made.machine_load.busy;
  run.busy_why = made.machine_load.why;
  run.traced = record->flags.traced;
  run.synthetic = record->flags.synthetic;
  run.sequential = record->flags.sequential;
  run.control = record->control;
  run.gpus = record->layout.gpus;
  run.nodes = record->layout.nodes;
  run.ntasks = record->layout.ntasks;
  run.cpus_per_task = record->layout.cpus_per_task;
  run.replicas_are_cores = record->task_layout().replicas_are_cores;
  run.fit_seconds = timing.fit_seconds;
  run.step_seconds = median_step(*record);
  run.compile_seconds = timing.compile_seconds;
  run.warmup_steps = real(timing.warmup_steps_excluded);
  run.rate_warmup_steps = real(rate.warmup_steps_excluded);
  run.samples_per_second = rate.samples_per_second;
  run.rate_is_given = run.samples_per_second.has_value();
  run.samples = rate.samples;
  run.steps = rate.steps;
  run.global_batch = record->plan.global_batch;
  if (!run.global_batch) run.global_batch = run.parameters.real("global_batch");
  run.batch_per_replica = run.parameters.real("batch_per_replica");
  run.utilization = record->utilization;
  run.test_accuracy = record->quality.test_accuracy;
  add_goal(run, record->quality.until);
  run.epoch_seconds = list_epochs(timing);
  add_phases(run, *record);
  fill_in(run);
  return run;
}

bool is_retry_of(const Run& again, const Run& run) {
  const auto folder = [](const Run& each) {
    return std::filesystem::path(each.where).parent_path();
  };
  return again.study == run.study && again.repeat == run.repeat && folder(again) == folder(run) &&
         (again.session == run.session || again.attempt > run.attempt);
}

namespace {

std::string describe_gpu(const RunRecord& record) {
  if (record.gpus.empty()) return "";
  const GpuFacts& first = record.gpus.front();
  return first.name + (first.driver.empty() ? "" : ", driver " + first.driver);
}

std::string join_pair(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : ", ") + b;
}

// "train of 3f9a12cd3f9a (dirty)"
std::string describe_program(const std::optional<ProgramFacts>& program) {
  if (!program) return "";
  if (program->commit.empty()) return program->name;
  return program->name + " of commit " + program->commit.substr(0, 12) +
         (program->dirty.value_or(false) ? " (dirty)" : "");
}

}  // namespace

const std::vector<std::string>& origin_names() {
  static const std::vector<std::string> names = {
      "source",   "system",  "machine", "GPU",       "hosts", "cluster", "modules",     "build",
      "compiler", "library", "backend", "transport", "data",  "weights", "own program", "packages"};
  return names;
}

std::vector<std::pair<std::string, std::string>> summarize_provenance(const RunRecord& record) {
  const Provenance& made = record.provenance;
  const Allocation given = made.allocation.value_or(Allocation{});
  const std::pair<const char*, std::string> all[] = {
      {"source", made.source},
      {"system", join_pair(made.stack, made.hardware)},
      {"machine", made.cpu_model},
      {"GPU", describe_gpu(record)},
      {"hosts", record.hosts()},
      {"cluster", join_pair(given.cluster, given.partition)},
      {"modules", given.modules},
      {"build", record.build()},
      {"compiler", join_pair(made.compiler, std::string(trim(made.compiler_flags)))},
      {"library", made.libraries},
      {"backend", made.backend_requested},
      {"transport", made.backend_used},
      {"data", join_pair(made.data_set, made.data_hash.empty() ? "" : "hash " + made.data_hash)},
      {"weights", made.weights_hash},
      {"own program", describe_program(made.program)},
      {"packages", made.program ? made.program->packages : ""}};
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [name, text] : all) {
    if (!text.empty()) found.emplace_back(name, text);
  }
  return found;
}

}  // namespace paceline
