#include "analysis/run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace paceline {

namespace {

std::string text_of(const Record& record, const char* pointer) {
  const Json::json_pointer path(pointer);
  if (!record.json().contains(path) || !record.json().at(path).is_string()) return "";
  return record.json().at(path).get<std::string>();
}

std::optional<int> integer_of(const Record& record, const char* pointer) {
  const auto number = record.number(pointer);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<bool> boolean_of(const Record& record, const char* pointer) {
  const Json::json_pointer path(pointer);
  if (!record.json().contains(path) || !record.json().at(path).is_boolean()) return std::nullopt;
  return record.json().at(path).get<bool>();
}

std::optional<double> median_step(const Json& record) {
  const Json::json_pointer path("/timing/step_seconds");
  if (!record.contains(path) || !record.at(path).is_array()) return std::nullopt;
  std::optional<double> slowest;
  for (const Json& rank : record.at(path)) {
    if (!rank.is_object() || !rank.contains("p50") || !rank["p50"].is_number()) continue;
    slowest = std::max(slowest.value_or(0), rank["p50"].get<double>());
  }
  return slowest;
}

std::vector<double> epochs_of(const Json& record) {
  const Json::json_pointer path("/timing/epoch_seconds");
  std::vector<double> seconds;
  if (!record.contains(path) || !record.at(path).is_array()) return seconds;
  for (const Json& epoch : record.at(path)) {
    if (!epoch.is_number() || !(epoch.get<double>() > 0)) return {};
    seconds.push_back(epoch.get<double>());
  }
  return seconds;
}

void add_phases(Run& run, const Json& record) {
  const auto phases = record.find("phases");
  if (phases == record.end() || !phases->is_array()) return;
  const auto number = [](const Json& rank, const char* key) {
    const auto it = rank.find(key);
    return it != rank.end() && it->is_number() ? it->get<double>() : 0.0;
  };
  for (const Json& rank : *phases) {
    run.phase_input += number(rank, "input");
    run.phase_forward += number(rank, "forward");
    run.phase_backward += number(rank, "backward");
    run.phase_communication += number(rank, "communication");
    run.phase_update += number(rank, "update");
    run.phase_other += number(rank, "other");
    run.phase_step += number(rank, "step");
    ++run.phase_ranks;
  }
}

void add_goal(Run& run, const Record& record) {
  run.goal = text_of(record, "/quality/until/goal");
  if (run.goal.empty()) return;
  const Json& until = record.json()["quality"]["until"];
  run.goal_reached = until.contains("reached") && until["reached"] == Json(true);
  if (run.goal_reached) run.epochs_to_goal = record.number("/quality/until/epochs");
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

std::string system_of(const Record& record) {
  const std::string stack = text_of(record, "/provenance/stack");
  const std::string hardware = text_of(record, "/provenance/hardware");
  return stack + (stack.empty() || hardware.empty() ? "" : ", ") + hardware;
}

}  // namespace

std::optional<double> Run::cpus_per_replica() const {
  if (!cpus_per_task) return std::nullopt;
  return static_cast<double>(*cpus_per_task) * ntasks.value_or(1) / gpus;
}

Run run_of(const Record& record) {
  Run run;
  run.where = record.where();
  run.kind = record.kind();
  run.study = record.study();
  run.point = record.point();
  run.status = record.status();
  run.reason = record.reason();
  run.session = record.session();
  run.build = record.build();
  run.workload = record.workload();
  run.parameters = record.parameters();
  run.precision = text_of(record, "/parameters/precision");
  run.backend = run.parameters.text("backend").value_or("");
  run.system = system_of(record);
  run.machine = machine_of(record);
  run.cpu_model = text_of(record, "/provenance/cpu_model");
  run.source = text_of(record, "/provenance/source");
  run.time_is = text_of(record, "/provenance/time_is");
  run.rate_is = text_of(record, "/provenance/rate_is");
  run.origin = origin_of(record);
  run.has_probe = record.number("/probe/flops_per_second").has_value();
  run.command = text_of(record, "/provenance/command");
  run.started_at = text_of(record, "/provenance/started_at");
  run.repeat = record.repeat();
  run.attempt = record.attempt();
  run.round = record.round();
  run.resumed = record.flag("resumed");
  run.oversubscribed = record.flag("oversubscribed");
  run.throttled = record.flag("throttled");
  run.busy = boolean_of(record, "/provenance/machine_load/busy");
  run.busy_why = text_of(record, "/provenance/machine_load/why");
  run.traced = record.flag("traced");
  run.synthetic = record.flag("synthetic");
  run.control = record.is_control();
  run.gpus = record.layout().gpus;
  run.nodes = integer_of(record, "/layout/nodes");
  run.ntasks = integer_of(record, "/layout/ntasks");
  run.cpus_per_task = integer_of(record, "/layout/cpus_per_task");
  run.replicas_are_cores = record.layout().replicas_are_cores;
  run.fit_seconds = record.number("/timing/fit_seconds");
  run.first_epoch_seconds = record.number("/timing/first_epoch_seconds");
  run.step_seconds = median_step(record.json());
  run.compile_seconds = record.number("/timing/compile_seconds");
  run.warmup_steps = record.number("/timing/warmup_steps_excluded");
  run.rate_warmup_steps = record.number("/throughput/warmup_steps_excluded");
  run.samples_per_second = record.number("/throughput/samples_per_second");
  run.rate_is_given = run.samples_per_second.has_value();
  run.samples = record.number("/throughput/samples");
  run.steps = record.number("/throughput/steps");
  run.global_batch = record.number("/plan/global_batch");
  if (!run.global_batch) run.global_batch = record.number("/parameters/global_batch");
  run.batch_per_replica = record.number("/parameters/batch_per_replica");
  run.utilization = record.number("/utilization");
  run.test_accuracy = record.number("/quality/test_accuracy");
  run.test_top5 = record.number("/quality/test_top5");
  add_goal(run, record);
  run.epoch_seconds = epochs_of(record.json());
  add_phases(run, record.json());
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

}  // namespace paceline
