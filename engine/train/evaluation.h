// Loss and accuracy on a data set, in parallel over ranks, real samples only.
#pragma once

#include "engine/comm/communicator.h"
#include "engine/device/device.h"
#include "engine/input/dataset.h"

namespace paceline {

// Means over the whole set, the same on every rank. Sums, not means, are reduced, so ranks may have
// unequal shares.
struct Evaluation {
  double loss = 0, accuracy = 0;
};
Evaluation evaluate(Program& program, int batch, const Dataset& dataset,
                    Communicator& communicator);

}  // namespace paceline
