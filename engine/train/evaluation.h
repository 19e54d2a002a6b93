// Loss and accuracy on a data set, in parallel over ranks, real samples only.
#pragma once

#include "engine/comm/communicator.h"
#include "engine/device/device.h"
#include "engine/input/loading/dataset.h"
#include "engine/input/loading/feeder.h"

namespace paceline {

// Means over the whole set, the same on every rank. Sums, not means, are reduced, so ranks may have
// unequal shares.
struct Evaluation {
  double loss = 0, accuracy = 0, top5 = 0;
  InputCounts input;  // of this rank
};

// `input`: this rank's, of how many, its batch, and what prepares the samples that do not lie in
// memory; results do not depend on its threads. Collective.
Evaluation evaluate(Program& program, const Dataset& dataset, Communicator& communicator,
                    Feeder::Setup input);

}  // namespace paceline
