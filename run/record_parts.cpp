#include "run/record_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/core/text.h"
#include "run/version.h"

namespace paceline {

double round_digits(double value) {
  return std::stod(fmt::format("{:.7g}", value));
}

void put_known(Json& json, const char* key, const std::optional<KnownValue>& value) {
  json[key] = nullptr;
  if (!value) return;
  if (const double* real = std::get_if<double>(&*value)) {
    json[key] = round_digits(*real);
  } else {
    std::visit([&](const auto& known) { json[key] = known; }, *value);
  }
}

Json values_json(const Point& parameters) {
  Json json = Json::object();
  for (const auto& [name, value] : parameters.values()) {
    json[name] = std::visit([](const auto& v) { return Json(v); }, value);
  }
  return json;
}

Json layout_json(const Layout& layout, const ThreadPlan& threads) {
  return {{"nodes", layout.nodes},
          {"ntasks", layout.ntasks},
          {"cpus_per_task", layout.cpus_per_task},
          {"gpus", layout.gpus},
          {"cpus_per_replica", layout.cpus_per_replica},
          {"replicas_are", layout.replicas_are_cores ? "cores" : "gpus"},
          {"compute_threads", threads.compute},
          {"input_threads", threads.input},
          {"comm_threads", threads.comm}};
}

Json allocation_json(const Environment& environment) {
  constexpr std::size_t kMostText = 2000;  // of a module list; a record is small
  static const std::vector<std::pair<const char*, const char*>> kFacts = {
      {"job", "SLURM_JOB_ID"},
      {"array_job", "SLURM_ARRAY_JOB_ID"},
      {"array_element", "SLURM_ARRAY_TASK_ID"},
      {"restarts", "SLURM_RESTART_COUNT"},
      {"cluster", "SLURM_CLUSTER_NAME"},
      {"partition", "SLURM_JOB_PARTITION"},
      {"nodes", "SLURM_JOB_NODELIST"},
      {"node", "SLURMD_NODENAME"},  // of the rank that writes
      {"tasks_per_node", "SLURM_TASKS_PER_NODE"},
      {"cpus_per_node", "SLURM_JOB_CPUS_PER_NODE"},
      {"cpus_per_task", "SLURM_CPUS_PER_TASK"},
      {"memory_mb_per_node", "SLURM_MEM_PER_NODE"},
      {"memory_mb_per_cpu", "SLURM_MEM_PER_CPU"},
      {"gpus", "SLURM_JOB_GPUS"},
      {"modules", "LOADEDMODULES"}};
  if (environment.count("SLURM_JOB_ID") == 0) return nullptr;
  Json json = Json::object();
  for (const auto& [key, variable] : kFacts) {
    const auto found = environment.find(variable);
    if (found != environment.end()) json[key] = found->second.substr(0, kMostText);
  }
  return json;
}

Json build_json(const std::vector<std::string>& command) {
  const Build b = build();
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_quote(word));
  return {{"version", b.version},
          {"commit", b.commit},
          {"dirty", b.dirty},
          {"compiler", b.compiler},
          {"compiler_flags", b.compiler_flags},
          {"command", join(words, " ")},
          {"allocation", allocation_json(environment_of_process())}};
}

}  // namespace paceline
