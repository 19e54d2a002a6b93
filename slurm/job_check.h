// What a job was really given, against what its run needs. In the job, before the run.
#pragma once

#include <string>

#include "engine/core/environment.h"
#include "results/parameters.h"

namespace paceline {

struct JobGrant {
  std::string job;     // "5_3", "17"; empty: not in a job
  std::string nodes;   // Slurm's list of them
  std::string node;    // this one
  int node_count = 0;  // 0: not known; so with all counts
  int tasks = 0;
  int cpus_on_node = 0;  // by Slurm
  int cpus_per_task = 0;
  int gpus_on_node = 0;
  int visible_gpus = -1;  // in CUDA_VISIBLE_DEVICES; -1: not set
  int cpus_in_mask = 0;   // that this process may use
  int restarts = 0;

  std::string text() const;  // for the log
};

JobGrant grant_of(const Environment& environment, int cpus_in_mask);

// Throws usage, with the cure, where the job cannot give a run of these parameters what it needs:
// other counts of nodes or tasks, too few CPUs for its tasks on this node, by Slurm's word or in
// the mask, no GPU or too few. Outside of a job all is left to the run itself.
void check_grant(const JobGrant& grant, const Point& parameters);

}  // namespace paceline
