// Computes nodes and tasks, in Slurm's terms, from gpus, CPUs and backend.
#pragma once

#include "results/parameters.h"

namespace paceline {

struct Layout {
  int nodes = 1;
  int ntasks = 1;
  int cpus_per_task = 1;
  int gpus = 1;              // number of replicas, also if a replica is a set of CPU cores
  int cpus_per_replica = 1;  // cpus_per_task divided among the replicas of a task
  bool replicas_are_cores = true;
};

// Uses gpus, nodes, gpus_per_task, cpus_per_task or cpus_per_replica, backend (of a program
// processes) and device. Defaults: 1, "self" and "cpu"; a backend that sums within tasks has one
// task a node. Throws usage if they contradict each other.
Layout make_layout(const Point& parameters, const std::string& where = "");

}  // namespace paceline
