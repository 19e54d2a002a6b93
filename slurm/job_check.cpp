#include "slurm/job_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "slurm/job_array.h"

namespace paceline {

namespace {

// 0 where it is not set, or no count.
int read_count(const Environment& environment, const char* name) {
  const auto value = to_integer(environment_value(environment, name));
  return value && *value > 0 && *value < 10'000'000 ? static_cast<int>(*value) : 0;
}

int count_visible_gpus(const Environment& environment) {
  const auto found = environment.find("CUDA_VISIBLE_DEVICES");
  if (found == environment.end()) return -1;
  const std::string list(trim(found->second));
  if (list.empty() || list == "NoDevFiles" || list == "-1") return 0;
  return static_cast<int>(split(list, ',').size());
}

[[noreturn]] void refuse(const std::string& what, const std::string& where,
                         const std::string& fix) {
  throw usage_error(what, where, fix);
}

void check_cpus(const JobGrant& grant, const Layout& layout, bool oversubscribe) {
  const int tasks_here = (layout.ntasks + layout.nodes - 1) / layout.nodes;
  const int needed = tasks_here * layout.cpus_per_task;
  const std::string need = fmt::format("{} tasks of {} CPUs", tasks_here, layout.cpus_per_task);
  if (grant.cpus_on_node > 0 && grant.cpus_on_node < needed && layout.nodes == 1) {
    refuse(fmt::format("the job has {} CPUs here, its run needs {} ({})", grant.cpus_on_node,
                       needed, need),
           grant.node, "check --ntasks and --cpus-per-task of the script");
  }
  if (grant.cpus_in_mask < needed && !oversubscribe) {
    refuse(fmt::format("the mask of this job has {} CPUs, its run needs {} ({})",
                       grant.cpus_in_mask, needed, need),
           grant.node,
           "the node binds jobs to fewer CPUs than they asked for: check \"hint\", "
           "\"cores_per_node\" and hyper-threads of the partition");
  }
}

void check_gpus(const JobGrant& grant, const Layout& layout) {
  if (layout.replicas_are_cores) return;
  const int needed = (layout.gpus + layout.nodes - 1) / layout.nodes;
  if (grant.visible_gpus == 0 || (grant.visible_gpus < 0 && grant.gpus_on_node == 0)) {
    refuse("the job sees no GPU", grant.node,
           "check the form of \"gpus\" in the site profile, and the partition");
  }
  const int here = std::max(grant.visible_gpus, grant.gpus_on_node);
  if (here < needed) {
    refuse(fmt::format("the job sees {} GPUs here, its run needs {}", here, needed), grant.node,
           "check the form of \"gpus\" in the site profile");
  }
}

constexpr double kWattHour = 3600;
// Slurm's word for "not known" in 32 and 64 bits, which accounting shows as a number.
constexpr double kUnknown = 4294967294, kUnknown64 = 1.8e19;

// "pm_counters" of "acct_gather_energy/pm_counters"; empty: none.
std::string find_plugin(const std::string& type) {
  const auto slash = type.rfind('/');
  const std::string name = slash == std::string::npos ? type : type.substr(slash + 1);
  return name == "none" || name == "(null)" ? "" : name;
}

}  // namespace

std::string JobGrant::text() const {
  if (job.empty()) return "not in a job of Slurm";
  return fmt::format(
      "job {} on {} (here {}): {} nodes, {} tasks, {} CPUs here ({} in the mask), {} GPUs here{}",
      job, nodes, node, node_count, tasks, cpus_on_node, cpus_in_mask, gpus_on_node,
      restarts > 0 ? fmt::format(", restart {}", restarts) : "");
}

JobGrant read_grant(const Environment& environment, int cpus_in_mask) {
  JobGrant grant;
  const std::string array = environment_value(environment, "SLURM_ARRAY_JOB_ID");
  grant.job = array.empty() ? environment_value(environment, "SLURM_JOB_ID")
                            : array + "_" + environment_value(environment, "SLURM_ARRAY_TASK_ID");
  grant.nodes = environment_value(environment, "SLURM_JOB_NODELIST");
  grant.node = environment_value(environment, "SLURMD_NODENAME");
  grant.node_count = read_count(environment, "SLURM_JOB_NUM_NODES");
  grant.tasks = read_count(environment, "SLURM_NTASKS");
  grant.cpus_on_node = read_count(environment, "SLURM_CPUS_ON_NODE");
  grant.cpus_per_task = read_count(environment, "SLURM_CPUS_PER_TASK");
  grant.gpus_on_node = read_count(environment, "SLURM_GPUS_ON_NODE");
  grant.visible_gpus = count_visible_gpus(environment);
  grant.cpus_in_mask = cpus_in_mask;
  grant.restarts = read_count(environment, "SLURM_RESTART_COUNT");
  return grant;
}

void check_grant(const JobGrant& grant, const Point& parameters) {
  if (grant.job.empty()) return;
  const Layout layout = make_layout(parameters);
  if (grant.node_count > 0 && grant.node_count != layout.nodes) {
    refuse(fmt::format("the job has {} nodes, its run needs {}", grant.node_count, layout.nodes),
           "job " + grant.job, "check --nodes of the script");
  }
  if (grant.tasks > 0 && grant.tasks != layout.ntasks) {
    refuse(fmt::format("the job has {} tasks, its run needs {}", grant.tasks, layout.ntasks),
           "job " + grant.job, "check --ntasks of the script");
  }
  const Value* oversubscribe = parameters.find("oversubscribe");
  check_cpus(grant, layout, oversubscribe && std::get<bool>(*oversubscribe));
  check_gpus(grant, layout);
}

std::string JobEnergy::text() const {
  return fmt::format(
      "energy by Slurm ({}): {:.4g} Wh of {}, with setup, and with other jobs on shared nodes",
      plugin, joules / kWattHour, counted(elements, "job"));
}

std::optional<JobEnergy> ask_energy(const SlurmCommands& slurm,
                                    const std::vector<std::int64_t>& jobs) {
  if (jobs.empty()) return std::nullopt;
  JobEnergy energy{.plugin = find_plugin(slurm.configured("AcctGatherEnergyType"))};
  if (energy.plugin.empty()) return std::nullopt;
  const CommandResult result =
      slurm.run({"sacct", "-n", "-P", "-X", "-j", fmt::format("{}", fmt::join(jobs, ",")), "-o",
                 "JobID,ConsumedEnergyRaw"});
  for (const std::string& line : split(result.out, '\n')) {
    const auto columns = split(line, '|');
    if (columns.size() != 2 || !parse_array_id(columns[0])) continue;
    const double joules = to_real(columns[1]).value_or(0);
    if (joules <= 0 || joules == kUnknown || joules >= kUnknown64) continue;
    energy.joules += joules;
    ++energy.elements;
  }
  return energy.elements > 0 ? std::optional(energy) : std::nullopt;
}

}  // namespace paceline
