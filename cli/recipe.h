// What changes how a network is trained beside optimizer and rate: schedule, decay, clipping,
// labels, accumulation, augmentation, goal. docs/training.md is the user's side.
#pragma once

#include "engine/plan/network.h"
#include "engine/train/config.h"
#include "results/parameters.h"

namespace paceline {

// Fills in what the given parameters need; throws usage for contradictions, and for what samples of
// this shape cannot go through.
void default_recipe(Point& parameters, const Shape& sample);

// From resolved parameters.
void set_recipe(TrainConfig& config, const Point& parameters);

}  // namespace paceline
