// Runs the replicas of this process: one thread and one communicator each, and a single outcome.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/comm/communicator.h"
#include "engine/core/error.h"
#include "engine/input/loading/dataset.h"
#include "engine/train/trainer.h"

namespace paceline {

struct SessionSetup {
  TrainConfig config;
  const Network* network = nullptr;
  const DatasetPair* data = nullptr;
  // Creates the device of replica `index` of this process, on that replica's thread.
  std::function<std::unique_ptr<Device>(int index)> make_device;
  int input_threads = 0;
  std::vector<std::vector<int>> input_cpus;      // one list per local replica
  std::vector<std::vector<int>> cpus;            // one list per local replica, all its CPUs
  const CheckpointSetup* checkpoints = nullptr;  // null: no checkpoints, no resume
  double first_sum_seconds = 0;                  // see Trainer::Setup
  const EventSetup* events = nullptr;            // null: no TensorBoard files
  const TraceSetup* trace = nullptr;             // null: no trace
  bool counts_caches = true;  // false: another process reports the cache that this one shares
  std::function<void(const Progress&)> report;
  std::function<void(const std::string&)> note, notify;  // see Trainer::Setup
  RunPartListener entered;                               // by the first replica of this process
  // Called immediately with a replica's own error, on its thread; must not throw. run_session()
  // returns only when all replicas have ended, and one may be stuck.
  std::function<void(const Error&)> failed;
};

// Trains with connected communicators, one for each local replica. If a replica fails, the others
// are released and the first error is thrown. Returns the outcome of this process's first rank,
// which is complete on rank 0.
TrainingOutcome run_session(const SessionSetup& setup,
                            std::vector<std::unique_ptr<Communicator>>& communicators);

// Computes once without a sum, and leaves parameters and statistics as they are. A library loads a
// kernel when it first runs, and waits for all that a process's GPUs do: also for another replica's
// sum, which waits for this one. So replicas of one process do this before their first sum.
void load_libraries(Program& program, const Plan& plan, Communicator& communicator);

// Shares one sample cache among the processes of a node. The first process creates it, the others
// open it. If one cannot, each process of that node uses its own part of the budget.

struct CacheSharing {
  int ranks = 1;          // number of ranks that share; the minimum over nodes
  std::size_t bytes = 0;  // memory limit of this rank's cache
  bool speaks = true;     // this rank reports the cache's fill level
  std::string refusal;    // why some ranks do not share, the same on every rank; may be empty
};

// Sets the caches of `data`'s stores. Collective over all replicas: the first replica of each
// process passes the data and the number of replicas in the process, its other replicas pass null.
// Throws as keep_apart().
CacheSharing share_cache(Communicator& communicator, DatasetPair* data, const InputOptions& options,
                         int replicas_here);

}  // namespace paceline
