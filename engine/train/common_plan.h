// The part of the preflight check that needs the compiled network.
#pragma once

#include "engine/comm/communicator.h"
#include "engine/device/device.h"

namespace paceline {

// Throws mismatch unless all ranks have the same plan (operations, shapes, parameter arena) and the
// same versions of the device's libraries. Collective; call it before collective allocations.
void check_common_plan(Communicator& communicator, const Plan& plan, const Device& device);

}  // namespace paceline
