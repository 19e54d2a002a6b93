// Converts parameters and flags to the engine's checkpoint settings.
#pragma once

#include <filesystem>
#include <string>

#include "results/parameters.h"
#include "run/config.h"

namespace paceline {

struct CheckpointSetup;
struct EventSetup;

// Flags of `train` that are not parameters.
struct StatePlaces {
  std::filesystem::path run;  // --run-dir; empty: see run_directory()
  std::string resume;         // --resume latest|PATH|JOBID; empty: start from scratch
};

// --run-dir; in a Slurm job its own folder (process_rank.h); else runs/WORKLOAD.
std::filesystem::path run_directory(const StatePlaces& places, const std::string& workload);

// What can be refused before ranks start. Throws input if --resume names nothing, usage if an
// earlier run left checkpoints in the folder.
void check_state(const std::string& workload, const CheckpointConfig& config,
                 const StatePlaces& places);

// `first`: this process has rank 0, the only rank that uses files. Throws as check_state() does.
CheckpointSetup checkpoint_setup(const std::string& workload, const Point& parameters,
                                 const CheckpointConfig& config, const StatePlaces& places,
                                 const std::string& data_hash, bool first);

// Converts parameters to the engine's settings for TensorBoard files.

// Default of --tensorboard, as in TensorFlow's tutorials.
inline constexpr char kEventFolder[] = "logs/fit";

struct EventPlaces {
  std::filesystem::path folder;  // parent folder of runs; empty: write nothing
  std::string name;              // the run's name without the time
  int histogram_every = 0;       // epochs
};

// `given`: the parameters that the user typed, which form the run's name.
EventPlaces event_places(const EventConfig& config, const std::string& workload,
                         const Point& given);

// On rank 0: creates FOLDER/<date-time>-<name>, with a number appended if that exists. Throws input
// if that fails.
EventSetup event_setup(const EventPlaces& places);

// Finds the file of initial weights from the parameter `weights`.

// "none": empty; "imagenet": the file in the folder of data set resnet50-imagenet; a checkpoint's
// folder: its file of parameters; else the file itself. Throws input if it does not exist; for
// imagenet, the error says how to get it.
std::filesystem::path weights_file(const std::string& parameter);

}  // namespace paceline
