// The result of a training run. run/ turns it into the record.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/device/update.h"
#include "engine/facts/rank.h"
#include "engine/facts/timing.h"
#include "engine/facts/training.h"
#include "engine/input/cache/image_store.h"
#include "engine/input/loading/dataset.h"
#include "engine/train/phase_clock.h"
#include "engine/train/trace/tracer.h"

namespace paceline {

// Complete on rank 0, which gathers the other ranks' times.
struct TrainingOutcome {
  Timing timing{.evaluation_seconds = 0, .events_seconds = 0, .consistency_seconds = 0};
  std::size_t steps = 0, samples = 0;  // of this call, if resumed; samples of all replicas
  std::size_t warmup_samples = 0;      // of the first kWarmupSteps, see count_warmup()
  std::size_t resumed_after = 0;       // steps done by earlier calls
  bool resumed = false;
  bool stopped = false;       // by a signal, after a checkpoint that is complete on all ranks
  bool goal_reached = false;  // an evaluation met TrainConfig::until
  QualityFacts quality;
  PlanFacts plan;
  ProbeFacts probe;
  InputFacts input;
  CheckpointFacts checkpoints;
  std::vector<RankFacts> each_rank;
  std::vector<RankTimes> ranks;  // their steps on rank 0 only
  std::optional<StragglerFacts> straggler;
  std::optional<TraceOutcome> trace;  // if requested
  std::vector<std::string> implementations;
  std::string device_description;
};

// Adds to `input`, of this rank, what all ranks read, and the first bad samples. Collective.
// `counts_caches`: this rank reports the cache that it shares with others of its process or node.
void gather_input(Communicator& communicator, const DatasetPair& data, bool counts_caches,
                  InputFacts& input);

// The step times of all ranks, on rank 0.

// Collective. Each rank gives as many steps. Rank 0 gets those of every rank, in `ranks`, which has
// an entry for each; the others get none. In pieces of about `piece_bytes`, since each rank of a
// node holds one: 4,096 ranks of 1,000 steps have 115 MB.
void gather_steps(Communicator& communicator, const std::vector<StepTimes>& mine,
                  std::vector<RankTimes>& ranks, std::size_t piece_bytes = std::size_t{8} << 20);

// Training throughput in samples per second, and the length of the warm-up.

// Warm-up steps, which fill caches and start threads. Rates, step quantiles and the straggler
// search exclude them.
inline constexpr std::size_t kWarmupSteps = 10;

// The number of excluded steps. Zero for short runs.
std::size_t count_warmup(const TrainingOutcome& outcome);

// Samples per second of all replicas, from the end of the warm-up on the rank that finished it
// first to the end of the last epoch. Includes time between steps. Excludes what fit_seconds
// excludes, and the choice of algorithms.
double samples_per_second(const TrainingOutcome& outcome);

}  // namespace paceline
