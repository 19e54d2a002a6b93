#include "run/record_parts.h"

#include "engine/core/environment.h"
#include "engine/core/text.h"
#include "run/version.h"

namespace paceline {

namespace {

// Nothing outside of a job.
std::optional<Allocation> find_allocation(const Environment& environment) {
  constexpr std::size_t kMostText = 2000;  // of a module list; a record is small
  if (environment.count("SLURM_JOB_ID") == 0) return std::nullopt;
  Allocation given;
  for (const auto& [member, variable] : {std::pair{&Allocation::job, "SLURM_JOB_ID"},
                                         {&Allocation::array_job, "SLURM_ARRAY_JOB_ID"},
                                         {&Allocation::array_element, "SLURM_ARRAY_TASK_ID"},
                                         {&Allocation::restarts, "SLURM_RESTART_COUNT"},
                                         {&Allocation::cluster, "SLURM_CLUSTER_NAME"},
                                         {&Allocation::partition, "SLURM_JOB_PARTITION"},
                                         {&Allocation::nodes, "SLURM_JOB_NODELIST"},
                                         {&Allocation::node, "SLURMD_NODENAME"},
                                         {&Allocation::tasks_per_node, "SLURM_TASKS_PER_NODE"},
                                         {&Allocation::cpus_per_node, "SLURM_JOB_CPUS_PER_NODE"},
                                         {&Allocation::cpus_per_task, "SLURM_CPUS_PER_TASK"},
                                         {&Allocation::memory_mb_per_node, "SLURM_MEM_PER_NODE"},
                                         {&Allocation::memory_mb_per_cpu, "SLURM_MEM_PER_CPU"},
                                         {&Allocation::gpus, "SLURM_JOB_GPUS"},
                                         {&Allocation::modules, "LOADEDMODULES"}}) {
    const auto found = environment.find(variable);
    if (found != environment.end()) given.*member = found->second.substr(0, kMostText);
  }
  return given;
}

}  // namespace

RunRecord record_beginning(const RecordTarget& target, const std::string& workload,
                           const Point& parameters) {
  RunRecord record;
  record.study = target.study;
  record.point = target.point;
  record.repeat = target.repeat;
  record.session = target.session;
  record.round = target.round;
  record.flags.sequential = target.sequential;
  record.workload = workload;
  record.parameters = parameters;
  record.identity = identity_hash(workload, parameters);
  return record;
}

LayoutFacts layout_facts(const Layout& layout, const ThreadPlan& threads) {
  LayoutFacts facts = layout_facts(layout);
  facts.compute_threads = threads.compute;
  facts.input_threads = threads.input;
  facts.comm_threads = threads.comm;
  return facts;
}

Provenance build_facts(const std::vector<std::string>& command) {
  const Build made = build();
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_quote(word));
  Provenance facts;
  facts.version = made.version;
  facts.commit = made.commit;
  facts.dirty = made.dirty;
  facts.compiler = made.compiler;
  facts.compiler_flags = made.compiler_flags;
  facts.command = join(words, " ");
  facts.allocation = find_allocation(environment_of_process());
  return facts;
}

}  // namespace paceline
