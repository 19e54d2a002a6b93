// How many samples a second a run trained, and how much of it was warm-up.
#pragma once

#include <cstddef>

#include "engine/train/outcome.h"

namespace paceline {

// Steps left out of rates, step quantiles and the search for a straggler: they warm caches and
// start threads.
inline constexpr std::size_t kWarmupSteps = 10;

// Of the first steps, how many are left out: none of a short run's.
std::size_t warmup_of(const TrainingOutcome& outcome);

// Samples a second of all replicas, from the end of the warm-up to that of the last epoch, in
// seconds of the rank that was through with its warm-up first. What lies between steps is inside;
// what fit_seconds leaves out is not, nor is the choice of algorithms.
double samples_per_second(const TrainingOutcome& outcome);

}  // namespace paceline
