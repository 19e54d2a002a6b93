// Converts parameters and flags to the engine's checkpoint settings.
#pragma once

#include <filesystem>
#include <string>

#include "engine/train/checkpoint/manager.h"
#include "results/parameters.h"
#include "run/config.h"

namespace paceline {

// Flags of `train` that are not parameters.
struct StatePlaces {
  std::filesystem::path run;  // --run-dir; empty: see run_directory()
  std::string resume;         // --resume latest|PATH|JOBID; empty: start from scratch
};

// --run-dir; in a Slurm job its own folder (run_directory.h); else runs/WORKLOAD.
std::filesystem::path run_directory(const StatePlaces& places, const std::string& workload);

// `first`: this process has rank 0, the only rank that uses files. Throws input if --resume finds
// nothing, usage if an earlier run left checkpoints in the folder.
CheckpointSetup checkpoint_setup(const std::string& workload, const Point& parameters,
                                 const CheckpointConfig& config, const StatePlaces& places,
                                 const std::string& data_hash, bool first);

}  // namespace paceline
