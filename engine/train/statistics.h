// Running averages of batch_norm, which each replica keeps for itself.
#pragma once

#include <functional>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"

namespace paceline {

// Runs `body` while every replica's program has the mean of all replicas' running averages, and
// then gives each its own back: what TensorFlow's mirrored strategy does when it reads a variable
// that is aggregated on read. Collective.
void with_averaged_statistics(Program& program, const Plan& plan, Communicator& communicator,
                              const std::function<void()>& body);

}  // namespace paceline
