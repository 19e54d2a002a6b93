// Where a run writes what TensorBoard shows: from parameters to the engine's event files.
#pragma once

#include <filesystem>
#include <string>

#include "engine/train/events/event_log.h"
#include "results/parameters.h"
#include "run/config.h"

namespace paceline {

// Where --tensorboard is given without a folder, as TensorFlow's tutorials have it.
inline constexpr char kEventFolder[] = "logs/fit";

struct EventPlaces {
  std::filesystem::path folder;  // above those of runs; empty: nothing is written
  std::string name;              // of the run, without its time
  int histogram_every = 0;       // epochs
};

// `given`: the parameters that were typed, which name the run.
EventPlaces event_places(const EventConfig& config, const std::string& workload,
                         const Point& given);

// Rank 0: makes FOLDER/<date-time>-<name>, or the same with a number behind it where that is
// taken. Throws input where it cannot.
EventSetup event_setup(const EventPlaces& places);

}  // namespace paceline
