// A communication backend: one object a process, found by name in the generated table.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/error.h"
#include "engine/core/support.h"
#include "engine/launch/gpus.h"
#include "engine/launch/process_rank.h"

namespace paceline {

class LivenessConnection;
class StallMonitor;
class StoreClient;

// The GPUs of a process's replicas, and what backends that use them ask of the device layer, which
// they do not see. From any thread.
struct ReplicaGpus {
  std::vector<Gpu> gpus;                          // one a replica
  std::function<void(int replica)> select;        // makes it the calling thread's current device
  std::function<void(void*, std::size_t)> clear;  // zeroes memory of the current device; blocks
};

// What connect() is told: where this process stands and how many replicas it holds.
struct Membership {
  ProcessRank process;
  int replicas_here = 1;
  Deadlines deadlines;
  // Errors call this process and its peers rank t * ranks_a_task, t being the task: more than 1
  // where a communicator stands for several replicas.
  int ranks_a_task = 1;
  // The run's bootstrap store, for backends that meet through it. Null in a world of one, and where
  // nothing is known of one.
  StoreClient* store = nullptr;
  // Knows which ranks are late. Null as `store`.
  LivenessConnection* control = nullptr;
  // It is told how far this process is by somebody else (recorded/).
  bool progress_is_noted = false;
  // Watches calls that may not return; may be null.
  StallMonitor* stall_monitor = nullptr;
  // Where gradients lie in the memory of GPUs; null: they lie on the host.
  const ReplicaGpus* gpus = nullptr;
  // Writes down why this process ends, where it cannot return to say so. May be empty.
  std::function<void(const Error&)> last_words = {};
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Whether it can serve on this machine, now, for such a membership; or why not, with the cure.
  virtual Support serves(const Membership& membership) const = 0;
  // Joins the world; one communicator for each replica of this process, in rank order. The
  // backend outlives them and leaves the world in its destructor.
  virtual std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) = 0;
  // Whether it sums in the memory of GPUs only.
  virtual bool needs_gpus() const { return false; }
  // The backend that serves in its place where gradients lie on GPUs; empty: itself, through
  // staged/ where it reduces on the host.
  virtual std::string_view on_gpus() const { return ""; }
  // Makes it reduce by its library's own all-reduce instead of ours, for comparison. False: there
  // is none. Before connect().
  virtual bool flatten() { return false; }
  // The library's own all-reduce beside ours, for measurements that take turns; one communicator
  // for each replica of this process, or none. Collective, after connect(), and destroyed before
  // it.
  struct Baseline {
    std::string name;  // "MPI_Allreduce"
    std::vector<std::unique_ptr<Communicator>> communicators;
  };
  virtual Baseline baseline() { return {}; }
  // The library that it calls, with its version, which must be the same on all ranks; empty: none,
  // or it does not say. After connect().
  virtual std::string library() const { return ""; }
  // What is really in use ("Open MPI v4.1.4, shared window in /dev/shm"), for the record; complete
  // once ranks have summed.
  virtual std::string description() const = 0;
};

using BackendFactory = std::unique_ptr<Backend> (*)();
// Puts something around a backend; throws usage where it does not fit.
using WrapperFactory = std::unique_ptr<Backend> (*)(std::unique_ptr<Backend>);

}  // namespace paceline
