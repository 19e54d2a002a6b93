// Clipping, decay and gradients of several batches: a device against the reference, from equal
// gradients and weights.
#pragma once

#include <functional>

#include "tests/conformance/device/cases.h"

namespace paceline::conformance {

using MakeReplica = std::function<Replica(const Network& network, int batch)>;

// Losses with and without smoothed labels, and hits among the first five, equal outputs included.
void follow_losses(const MakeReplica& make);

// Every optimizer with clipping by norm and by value and both forms of decay, in two ranges.
void follow_updates(const MakeReplica& make, double bound);

// The gradient of three batches that are put together, the last one's range by range; and clipped
// by its norm.
void follow_accumulation(const MakeReplica& make, double bound);

}  // namespace paceline::conformance
