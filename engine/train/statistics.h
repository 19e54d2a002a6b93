// Running averages of batch_norm. Each replica has its own.
#pragma once

#include <functional>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"

namespace paceline {

// Replaces every replica's running averages with their mean over replicas while `body` runs, and
// restores them afterwards. TensorFlow's mirrored strategy does the same when it reads variables
// with aggregation on read. Collective.
void with_averaged_statistics(Program& program, const Plan& plan, Communicator& communicator,
                              const std::function<void()>& body);

}  // namespace paceline
