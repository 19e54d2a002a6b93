// Compares a job's actual allocation with what its run needs, inside the job before the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "results/parameters.h"
#include "slurm/commands.h"

namespace paceline {

struct JobGrant {
  std::string job;     // "5_3", "17"; empty: not in a job
  std::string nodes;   // Slurm's list of nodes
  std::string node;    // this one
  int node_count = 0;  // 0: unknown, like all counts
  int tasks = 0;
  int cpus_on_node = 0;  // according to Slurm
  int cpus_per_task = 0;
  int gpus_on_node = 0;
  int visible_gpus = -1;  // from CUDA_VISIBLE_DEVICES; -1: not set
  int cpus_in_mask = 0;   // in the affinity mask
  int restarts = 0;

  std::string text() const;  // for the log
};

JobGrant read_grant(const Environment& environment, int cpus_in_mask);

// Throws usage with a cure if the job lacks what a run of these parameters needs: different numbers
// of nodes or tasks, too few CPUs on this node (according to Slurm or the affinity mask), too few
// GPUs. Outside of a job, the run itself checks.
void check_grant(const JobGrant& grant, const Point& parameters);

// Energy that Slurm's accounting has of jobs.

struct JobEnergy {
  std::string plugin;        // AcctGatherEnergyType: "pm_counters", "rapl", "ipmi"
  double joules = 0;         // ConsumedEnergyRaw
  std::size_t elements = 0;  // that have it

  // "energy by Slurm (pm_counters): 12.3 Wh of 4 jobs, ..." and what it covers.
  std::string text() const;
};

// The energy of whole jobs: their nodes, with setup and all runs of an element, and with other jobs
// on shared nodes. Empty without such a plugin, accounting, or figures.
std::optional<JobEnergy> ask_energy(const SlurmCommands& slurm,
                                    const std::vector<std::int64_t>& jobs);

}  // namespace paceline
