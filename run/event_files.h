// Converts parameters to the engine's settings for TensorBoard files.
#pragma once

#include <filesystem>
#include <string>

#include "engine/train/events/event_log.h"
#include "results/parameters.h"
#include "run/config.h"

namespace paceline {

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

}  // namespace paceline
