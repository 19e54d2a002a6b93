// "mirrored/mpi": the replicas of a task are threads that add through their common memory, and the
// first of each task, its leader, adds the tasks' sums through another backend. Replicas are
// numbered task by task.
#pragma once

#include <memory>
#include <vector>

#include "engine/comm/backend.h"

namespace paceline {

// `between` has one communicator a task.
std::unique_ptr<Backend> make_hierarchical_backend(std::unique_ptr<Backend> inside,
                                                   std::unique_ptr<Backend> between);

// What the leader of a task's replicas is told by whoever connects the tasks.
Membership leader_of(Membership membership);

// A communicator for each replica of this task, around the one that its leader has with the others.
std::vector<std::unique_ptr<Communicator>> connect_around(std::shared_ptr<Communicator> between,
                                                          const Membership& membership);

}  // namespace paceline
