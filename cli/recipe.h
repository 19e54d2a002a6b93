// What changes how a network is trained beside optimizer and rate: schedule, decay, clipping,
// labels, accumulation, goal. docs/training.md is the user's side.
#pragma once

#include "engine/train/config.h"
#include "results/parameters.h"

namespace paceline {

// Fills in what the given parameters need; throws usage for contradictions.
void default_recipe(Point& parameters);

// From resolved parameters.
void set_recipe(TrainConfig& config, const Point& parameters);

}  // namespace paceline
