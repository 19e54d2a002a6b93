// A communication backend: one object per process, created by name from the generated table.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/group.h"
#include "engine/core/error.h"
#include "engine/core/support.h"
#include "engine/launch/gpus.h"
#include "engine/launch/process_rank.h"

namespace paceline {

class LivenessConnection;
class StallMonitor;
class StoreClient;

// The GPUs of a process's replicas, and the device functions that backends on GPUs need. Callable
// from any thread.
struct ReplicaGpus {
  std::vector<Gpu> gpus;                    // one per replica
  std::function<void(int replica)> select;  // makes it the current device of the calling thread
  std::function<void(void*, std::size_t)> clear;  // zeroes memory on the current device; blocks
};

// The input of connect(): this process's place in the world, and its replicas.
struct Membership {
  ProcessRank process;
  int replicas_here = 1;
  Deadlines deadlines;
  // Errors name a task t as rank t * ranks_a_task. More than 1 if a communicator represents several
  // replicas.
  int ranks_a_task = 1;
  // The processes that are to be connected, by their ranks. Empty: all.
  std::vector<int> only = {};
  // The run's bootstrap store, through which ranks meet. Null if the world has one process or no
  // store is known.
  StoreClient* store = nullptr;
  // Knows which ranks are late. Null in the same cases as `store`.
  LivenessConnection* control = nullptr;
  // A wrapper (recorded/) reports this process's progress, so the backend must not.
  bool progress_is_noted = false;
  // Watches calls that may never return. May be null.
  StallMonitor* stall_monitor = nullptr;
  // Set if gradients are in GPU memory. Null: they are in host memory.
  const ReplicaGpus* gpus = nullptr;
  // Records why this process ends, for cases where it cannot return. May be empty.
  std::function<void(const Error&)> on_fatal_error = {};

  // The processes that are connected.
  RankGroup group() const {
    const RankGroup all = RankGroup::numbered(process.rank, process.size, ranks_a_task);
    return only.empty() ? all : subgroup(all, only);
  }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Whether it can serve this membership on this machine now. If not, why, with a cure.
  virtual Support serves(const Membership& membership) const = 0;
  // Joins the world. Returns one communicator for each replica of this process, in rank order; none
  // for a process that is not to be connected. Collective over all processes. The backend outlives
  // the communicators, and leaves the world in its destructor.
  virtual std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) = 0;
  // Whether it reduces only in GPU memory.
  virtual bool needs_gpus() const { return false; }
  // The backend that replaces it if gradients are on GPUs. Empty: itself, wrapped in staged/ if it
  // reduces on the host.
  virtual std::string_view on_gpus() const { return ""; }
  // The stack "this/between": this one inside tasks or nodes, `between` among them. Throws usage if
  // it cannot stand inside.
  virtual std::unique_ptr<Backend> around(std::unique_ptr<Backend> between);
  // Name and version of the library that it calls, which must be equal on all ranks. Empty: no
  // library or unknown. Call after connect().
  virtual std::string library() const { return ""; }
  // The transport in use ("Open MPI v4.1.4, 2 ranks on 1 node, MPI_Allreduce of component tuned"),
  // for the record. Complete after the first sum.
  virtual std::string description() const = 0;
};

using BackendFactory = std::unique_ptr<Backend> (*)();
// Wraps a backend. Throws usage if it cannot wrap this one.
using WrapperFactory = std::unique_ptr<Backend> (*)(std::unique_ptr<Backend>);

}  // namespace paceline
