// Loss and accuracy on a data set, in parallel over ranks. Counts real samples only.
#pragma once

#include <functional>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"
#include "engine/input/loading/dataset.h"
#include "engine/input/loading/feeder.h"

namespace paceline {

// Means over the whole set, equal on every rank. Ranks reduce sums, so their shares may differ in
// size.
struct Evaluation {
  double loss = 0, accuracy = 0, top5 = 0;
  InputCounts input;  // of this rank
};

// `input` has this rank's number, the number of ranks, its batch, and how to prepare samples that
// are not in memory. Results do not depend on its threads. Collective.
Evaluation evaluate(Program& program, const Dataset& dataset, Communicator& communicator,
                    Feeder::Setup input);

// Running averages of batch_norm. Each replica has its own.

// Replaces every replica's running averages with their mean over replicas while `body` runs, and
// restores them afterwards. TensorFlow's mirrored strategy does the same when it reads variables
// with aggregation on read. Collective.
void with_averaged_statistics(Program& program, const Plan& plan, Communicator& communicator,
                              const std::function<void()>& body);

}  // namespace paceline
