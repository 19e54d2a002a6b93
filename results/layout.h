// From gpus, CPUs and backend to nodes and tasks, as Slurm counts them.
#pragma once

#include "results/parameters.h"

namespace paceline {

struct Layout {
  int nodes = 1;
  int ntasks = 1;
  int cpus_per_task = 1;
  int gpus = 1;              // replicas in all, also where a replica is a set of CPU cores
  int cpus_per_replica = 1;  // cpus_per_task shared by the replicas of a task
  bool replicas_are_cores = true;
};

// Reads gpus, nodes, cpus_per_task or cpus_per_replica, backend and device; missing ones are 1,
// "self" and "cpu". Throws usage where they contradict each other.
Layout layout_of(const Point& parameters, const std::string& where = "");

}  // namespace paceline
