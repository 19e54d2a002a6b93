// How a run keeps its state: from parameters and flags to the engine's checkpoints.
#pragma once

#include <filesystem>
#include <string>

#include "engine/train/checkpoint/manager.h"
#include "results/parameters.h"
#include "run/config.h"

namespace paceline {

// Flags of `train` that are no parameters.
struct StatePlaces {
  std::filesystem::path run;  // --run-dir; empty: see run_directory()
  std::string resume;         // --resume latest|PATH|JOBID; empty: start afresh
};

// --run-dir; in a Slurm job its own folder (run_directory.h); else runs/WORKLOAD.
std::filesystem::path run_directory(const StatePlaces& places, const std::string& workload);

// `first`: this process has rank 0, which alone looks at files. Throws input where --resume leads
// nowhere, usage where an earlier run's checkpoints lie in the way.
CheckpointSetup checkpoint_setup(const std::string& workload, const Point& parameters,
                                 const CheckpointConfig& config, const StatePlaces& places,
                                 const std::string& data_hash, bool first);

}  // namespace paceline
