// Training throughput in samples per second, and the length of the warm-up.
#pragma once

#include <cstddef>

#include "engine/train/outcome.h"

namespace paceline {

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
