// Provenance of a run: program, machine, data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/bounds.h"

namespace paceline {

// From Slurm's environment variables.
struct Allocation {
  std::string job, array_job, array_task, restarts, cluster, partition, nodes;
  std::string node;  // of the writing rank
  std::string tasks_per_node, cpus_per_node, cpus_per_task, memory_mb_per_node, memory_mb_per_cpu;
  std::string gpus, modules;
  std::optional<int> other_jobs;  // maximum per node, at the start or end

  template <typename Each>
  void fields(Each& each) {
    each("job", job);
    each("array_job", array_job);
    each("array_task", array_task);
    each("restarts", restarts);
    each("cluster", cluster);
    each("partition", partition);
    each("nodes", nodes);
    each("node", node);
    each("tasks_per_node", tasks_per_node);
    each("cpus_per_node", cpus_per_node);
    each("cpus_per_task", cpus_per_task);
    each("memory_mb_per_node", memory_mb_per_node);
    each("memory_mb_per_cpu", memory_mb_per_cpu);
    each("gpus", gpus);
    each("modules", modules);
    each("other_jobs", other_jobs);
  }
};

// One node; hardware threads, usable or not.
struct NodeFacts {
  std::optional<int> cpus;
  std::optional<std::int64_t> memory_bytes;

  template <typename Each>
  void fields(Each& each) {
    each("cpus", cpus);
    each("memory_bytes", memory_bytes);
  }
};

// How busy other processes kept the run's CPUs. Shares are of CPU time.
struct LoadFacts {
  std::optional<bool> busy;
  std::string why;
  std::optional<double> seconds, other_cpu_share, worst_other_cpu_share, steal_share;
  std::optional<double> cpu_limited_share, cpu_pressure_share, load_average;
  std::optional<std::int64_t> runnable_tasks_before, runnable_tasks_after, involuntary_switches;
  std::optional<std::int64_t> thermal_throttles;
  std::optional<double> least_mhz, involuntary_switches_per_step;
  std::optional<std::int64_t> peak_memory_bytes;  // resident, summed over processes

  template <typename Each>
  void fields(Each& each) {
    each("busy", busy);
    each("why", why);
    each("seconds", seconds);
    each("other_cpu_share", other_cpu_share, kShare);
    each("worst_other_cpu_share", worst_other_cpu_share, kShare);
    each("steal_share", steal_share, kShare);
    each("cpu_limited_share", cpu_limited_share);
    each("cpu_pressure_share", cpu_pressure_share);
    each("load_average", load_average);
    each("runnable_tasks_before", runnable_tasks_before);
    each("runnable_tasks_after", runnable_tasks_after);
    each("involuntary_switches", involuntary_switches);
    each("thermal_throttles", thermal_throttles);
    each("least_mhz", least_mhz);
    each("involuntary_switches_per_step", involuntary_switches_per_step);
    each("peak_memory_bytes", peak_memory_bytes);
  }
};

// Of workload command: somebody's own program.
struct ProgramFacts {
  std::string name, directory, commit;  // of the directory
  std::optional<bool> dirty;
  std::string files_hash;                    // of the files that its command names
  std::string python_environment, packages;  // "torch 2.9.0, numpy 2.3.4"
  std::string precision;                     // "fp32", as it reports it; may be empty
  std::optional<double> seconds;             // from its start to its end

  // Its commit, dirty flag and files; empty if none is known.
  std::string build() const;
  // Whether `other` is the same program before or after a change. What one of them does not know
  // does not distinguish them.
  bool differs_from(const ProgramFacts& other) const;

  template <typename Each>
  void fields(Each& each) {
    each("name", name);
    each("directory", directory);
    each("commit", commit);
    each("dirty", dirty);
    each("files_hash", files_hash);
    each("python_environment", python_environment);
    each("packages", packages);
    each("precision", precision);
    each("seconds", seconds);
  }
};

// Of kind imported: the file of another tool that the numbers are from.
struct ImportFacts {
  std::string format, tool;              // "nccl-tests", "nccl-tests 2.16.0"
  std::string file, xxh3;                // its name without folders, and the hash of its bytes
  std::optional<std::int64_t> line;      // where the record begins in it, from 1
  std::string imported_at, imported_by;  // UTC, and the version of Paceline

  template <typename Each>
  void fields(Each& each) {
    each("format", format);
    each("tool", tool);
    each("file", file);
    each("xxh3", xxh3);
    each("line", line, kCount);
    each("imported_at", imported_at);
    each("imported_by", imported_by);
  }
};

struct Provenance {
  std::string version, commit;
  std::optional<bool> dirty;
  std::string compiler, compiler_flags, command;
  std::optional<Allocation> allocation;
  std::string libraries;
  std::vector<std::string> hosts;  // one per rank
  std::string cpu_model;
  NodeFacts machine;
  std::vector<std::string> affinity;  // one per rank: "0-3"
  std::string data_set, data_hash, weights_hash, backend_requested, backend_used;
  std::vector<std::string> implementations;
  std::string started_at;
  LoadFacts machine_load;
  std::optional<bool> fell_back;
  std::optional<ProgramFacts> program;
  std::optional<ImportFacts> imported;
  // Published and imported: the source, and the meaning of its numbers.
  std::string source, stack, hardware, time_is, rate_is, same_work_as;

  template <typename Each>
  void fields(Each& each) {
    each("version", version);
    each("commit", commit);
    each("dirty", dirty);
    each("compiler", compiler);
    each("compiler_flags", compiler_flags);
    each("command", command);
    each("allocation", allocation);
    each("libraries", libraries);
    each("hosts", hosts);
    each("cpu_model", cpu_model);
    each("machine", machine);
    each("affinity", affinity);
    each("data_set", data_set);
    each("data_hash", data_hash);
    each("weights_hash", weights_hash);
    each("backend_requested", backend_requested);
    each("backend_used", backend_used);
    each("implementations", implementations);
    each("started_at", started_at);
    each("machine_load", machine_load);
    each("fell_back", fell_back);
    each("program", program);
    each("imported", imported);
    each("source", source);
    each("stack", stack);
    each("hardware", hardware);
    each("time_is", time_is);
    each("rate_is", rate_is);
    each("same_work_as", same_work_as);
  }
};

}  // namespace paceline
