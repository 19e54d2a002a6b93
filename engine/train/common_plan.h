// The part of the roll call that only a trainer can answer: what its device made of the network.
#pragma once

#include "engine/comm/communicator.h"
#include "engine/device/device.h"

namespace paceline {

// Throws mismatch unless all ranks have the same plan (operations, shapes, parameter arena) and the
// same versions of the device's libraries. Collective; before anything is allocated together.
void check_common_plan(Communicator& communicator, const Plan& plan, const Device& device);

}  // namespace paceline
