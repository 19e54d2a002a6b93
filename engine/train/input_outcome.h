// Gathers what input did on all ranks.
#pragma once

#include "engine/comm/communicator.h"
#include "engine/input/loading/dataset.h"
#include "engine/train/outcome.h"

namespace paceline {

constexpr std::size_t kBadPlaces = 5;  // number of bad samples that are named

// Collective. `mine` has this rank's counts. `counts_caches`: this rank reports the cache that it
// shares with others of its process or node.
InputOutcome gather_input(Communicator& communicator, const DatasetPair& data,
                          const RunInputCounts& mine, bool counts_caches);

}  // namespace paceline
