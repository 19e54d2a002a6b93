// How a run reads its data: from configuration and flags to the engine's options.
#pragma once

#include <filesystem>

#include "run/config.h"

namespace paceline {

// Flags of `train` that are no parameters: they name places of this machine.
struct InputPlaces {
  std::filesystem::path data;   // --data; empty: find it
  std::filesystem::path stage;  // --stage; empty: read the files where they are
  std::filesystem::path cache;  // --cache-dir; empty: what does not fit is decoded again
};

// Throws usage for contradictions; touches no file.
void check_places(const InputConfig& config, const InputPlaces& places);

// Of one process. Throws usage where the cache is to be larger than what this machine has free.
InputOptions input_options(const InputConfig& config, const InputPlaces& places,
                           const Layout& layout);

// Throws usage for a parameter or flag that is for encoded images only, where there are none.
void check_samples_in_memory(const InputConfig& config, const InputPlaces& places);

}  // namespace paceline
