// Divides a replica's CPUs among its threads, and checks the numbers before anything starts.
#pragma once

#include <optional>

#include "engine/launch/topology.h"

namespace paceline {

// Threads of one replica. With 0 input or communication threads, the compute thread does that work
// inline.
struct ThreadPlan {
  int compute = 1, input = 0, comm = 0;
  int total() const { return compute + input + comm; }
};

// The user's request. Defaults: 0 input, 0 communication, and the rest for compute.
struct ThreadRequest {
  std::optional<int> compute, input, comm;
};

// Throws usage with a cure if the threads exceed `cpus_per_replica`.
ThreadPlan plan_threads(int cpus_per_replica, const ThreadRequest& request);

// Checks that `replicas` replicas of `cpus_per_replica` CPUs each fit in `mask`, the CPUs that this
// task (or all tasks about to be started here) may use. Throws usage with a cure if not: always if
// one replica alone needs more than the mask, else unless `oversubscribe`.
void check_mask(const CpuSet& mask, int replicas, int cpus_per_replica, bool oversubscribe);

}  // namespace paceline
