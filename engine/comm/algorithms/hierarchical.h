// "mirrored/mpi": replicas of a task are threads that reduce in their common memory. The first
// replica of each task, its leader, reduces the tasks' sums through another backend. Ranks are
// numbered task by task.
#pragma once

#include <memory>
#include <vector>

#include "engine/comm/backend.h"

namespace paceline {

// "inside/between", where `between` has one communicator per task.
std::unique_ptr<Backend> make_hierarchical_backend(std::string_view inside,
                                                   std::unique_ptr<Backend> between);

// Leaders wait longer than the others: those know which replica did not come, leaders only which
// task or node.
Deadlines deadlines_of_leader(Deadlines deadlines);

// The membership of a task's leader in the backend between tasks.
Membership leader_membership(Membership membership);

// One communicator for each replica of this task. `between` is the leader's communicator with the
// other tasks.
std::vector<std::unique_ptr<Communicator>> connect_around(std::shared_ptr<Communicator> between,
                                                          const Membership& membership);

}  // namespace paceline
