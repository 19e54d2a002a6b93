// This process in the MPI world: initialised, split into nodes, and finalised unless something
// failed.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/launch/process_rank.h"

namespace paceline::mpi {

// MPI calls with checked results and bounded waits.

// Throws peer_lost or internal with MPI's error text. `call` is the function's name.
void check(int code, const char* call);

// How wait_for() waits: polls for `spin_seconds`, then sleeps between polls. Throws stall past the
// deadline, and whatever `interrupt` throws, which it calls repeatedly. After an error, the request
// is abandoned and MPI must not be used.
struct WaitDeadline {
  Deadlines deadlines;
  double spin_seconds = 0;
  std::function<void()> interrupt;
};
// The peer of a wait: a rank of the world, or any other (-1). If it already `came` to the
// collective, the deadline is longer, so that the rank that waits for the missing one reports
// first.
struct Awaited {
  int rank = -1;
  bool came = false;
};
void wait_for(MPI_Request& request, const WaitDeadline& deadline, std::string_view label,
              Awaited who = {});

// "Open MPI v4.1.4", "MPICH Version: 4.0.2". Callable before initialisation.
std::string library_version();

class World {
 public:
  // Calls MPI_Init_thread and compares the result with `process`. Throws usage with a cure if they
  // differ. Errors name process r as rank r * ranks_a_task.
  World(const ProcessRank& process, int ranks_a_task);
  // Finalises, except after a failure or during an exception: MPI_Finalize would wait forever for
  // peers that are gone.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int nodes() const { return nodes_; }
  int node_rank() const { return node_rank_; }
  int node_size() const { return static_cast<int>(node_ranks_.size()); }
  // Rank numbers for error messages: this process, those of its node in order, and the leaders.
  int name() const { return rank_ * ranks_a_task_; }
  const std::vector<int>& node_names() const { return node_ranks_; }
  const std::vector<int>& leader_names() const { return leader_ranks_; }
  std::vector<int> names() const;  // of all

  MPI_Comm all() const { return all_; }
  MPI_Comm node() const { return node_; }
  MPI_Comm leaders() const { return leaders_; }  // null on ranks that are not leaders

  // The communicator of those that name the same group, freed by the world; null on ranks without
  // one. Collective over all.
  MPI_Comm split(std::optional<int> group);

  // How long waits poll before they sleep: not at all where the ranks of this node share CPUs.
  double spin_seconds() const;

  void fail() noexcept { failed_ = true; }
  // After a failure, no collective may be called.
  bool failing() const noexcept;

 private:
  void split_nodes();
  void count_cpus();

  MPI_Comm all_ = MPI_COMM_NULL, node_ = MPI_COMM_NULL, leaders_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, nodes_ = 1, node_rank_ = 0, node_cpus_ = 1, ranks_a_task_ = 1;
  std::vector<int> node_ranks_, leader_ranks_;  // times ranks_a_task_
  std::vector<MPI_Comm> splits_;
  std::atomic<bool> failed_{false};
  int exceptions_at_start_;
};

}  // namespace paceline::mpi
