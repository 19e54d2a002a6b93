// The replicas of this process: one thread each, a communicator each, one outcome.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/core/error.h"
#include "engine/train/trainer.h"

namespace paceline {

struct SessionSetup {
  TrainConfig config;
  const Network* network = nullptr;
  const DatasetPair* data = nullptr;
  // Makes the device of replica `index` of this process; called on that replica's thread.
  std::function<std::unique_ptr<Device>(int index)> make_device;
  int input_threads = 0;
  std::vector<std::vector<int>> input_cpus;      // of each replica here
  std::vector<std::vector<int>> cpus;            // of each replica here, all of them
  const CheckpointSetup* checkpoints = nullptr;  // null: none is written or resumed
  double first_sum_seconds = 0;                  // as Trainer::Setup has it
  const EventSetup* events = nullptr;            // null: nothing for TensorBoard
  const TraceSetup* trace = nullptr;             // null: no trace
  bool counts_caches = true;  // false: another process tells how full the cache is that it shares
  std::function<void(const Progress&)> report;
  std::function<void(const std::string&)> note, tell;  // as Trainer::Setup has them
  // Told of a replica's own error at once: run_session() returns only with all replicas, one of
  // which may be stuck. On that replica's thread; must not throw.
  std::function<void(const Error&)> failed;
};

// Trains over already connected communicators, one a replica here. Where one replica fails the
// others are released and the first cause is thrown. The outcome is that of this process's first
// rank, complete on rank 0.
TrainingOutcome run_session(const SessionSetup& setup,
                            std::vector<std::unique_ptr<Communicator>>& communicators);

}  // namespace paceline
