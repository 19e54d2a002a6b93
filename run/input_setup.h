// Converts configuration and flags to the engine's input options.
#pragma once

#include <filesystem>

#include "run/config.h"

namespace paceline {

// Flags of `train` that are not parameters, because they are local paths.
struct InputPlaces {
  std::filesystem::path data;   // --data; empty: find it
  std::filesystem::path stage;  // --stage; empty: read files in place
  std::filesystem::path cache;  // --cache-dir; empty: decode again what does not fit
};

// Throws usage for contradictions. Accesses no files.
void check_places(const InputConfig& config, const InputPlaces& places);

// Options for one process. Throws usage if the cache is larger than the free memory.
InputOptions input_options(const InputConfig& config, const InputPlaces& places,
                           const Layout& layout);

// Throws usage for parameters or flags that only apply to encoded images.
void check_samples_in_memory(const InputConfig& config, const InputPlaces& places);

}  // namespace paceline
