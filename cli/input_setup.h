// How a run reads its data: from the parameters and flags to the engine's options.
#pragma once

#include <filesystem>

#include "engine/input/image_store.h"
#include "engine/launch/threads.h"
#include "results/layout.h"
#include "results/parameters.h"

namespace paceline {

// Flags of `train` that are no parameters: they name places of this machine.
struct InputPlaces {
  std::filesystem::path data;   // --data; empty: find it
  std::filesystem::path stage;  // --stage; empty: read the files where they are
  std::filesystem::path cache;  // --cache-dir; empty: what does not fit is decoded again
};

// Throws usage for contradictions between parameters; touches no file.
void check_input(const Point& parameters, const ThreadPlan& threads);
void check_places(const Point& parameters, const InputPlaces& places);

// Of one process. Throws usage where cache_mb is more than this machine has free.
InputOptions input_options(const Point& parameters, const InputPlaces& places, const Layout& layout,
                           const ThreadPlan& threads);

// Throws usage for a parameter or flag that is of encoded images only, where there are none.
void check_samples_in_memory(const Point& parameters, const InputPlaces& places);

}  // namespace paceline
