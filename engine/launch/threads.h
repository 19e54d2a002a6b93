// How a replica's CPUs are shared among its threads, and what is refused before anything starts.
#pragma once

#include <optional>

#include "engine/launch/topology.h"

namespace paceline {

// Threads of one replica. Input and communication threads of 0 mean that the compute thread does
// that work itself, inline.
struct ThreadPlan {
  int compute = 1, input = 0, comm = 0;
  int total() const { return compute + input + comm; }
};

// What the user asked for; unset: 0 input, 0 communication, compute takes the rest.
struct ThreadRequest {
  std::optional<int> compute, input, comm;
};

// Throws usage, with the cure, where the threads are more than `cpus_per_replica`.
ThreadPlan plan_threads(int cpus_per_replica, const ThreadRequest& request);

// `replicas` replicas of `cpus_per_replica` CPUs each are to share `mask` (the CPUs this task, or
// all tasks that we are about to start here, may use). Throws usage, with the cure, where they do
// not fit: always if one replica alone needs more than the mask (a mask of one CPU is mostly Open
// MPI's default binding, and the cure says so), else unless `oversubscribe`.
void check_mask(const CpuSet& mask, int replicas, int cpus_per_replica, bool oversubscribe);

}  // namespace paceline
