// "mirrored/mpi": the replicas of a task are threads that add through their common memory, and the
// first of each task, its leader, adds the tasks' sums through another backend. Replicas are
// numbered task by task.
#pragma once

#include <memory>

#include "engine/comm/backend.h"

namespace paceline {

// `between` has one communicator a task.
std::unique_ptr<Backend> make_hierarchical_backend(std::unique_ptr<Backend> inside,
                                                   std::unique_ptr<Backend> between);

}  // namespace paceline
