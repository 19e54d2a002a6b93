// What a replica will need, before it runs.
#pragma once

#include "engine/train/memory_use.h"
#include "results/parameters.h"
#include "workloads/workload.h"

namespace paceline {

// The plan of a replica on the cpu device (on `reference` in fp64), where some layers are one
// operation. Of `parameters`: batch_per_replica, precision, optimizer, variant; the workload's
// where they are not given. Without the libraries' scratch. Throws usage where that device is not
// built.
MemoryUse planned_memory(const Workload& workload, const Point& parameters);

}  // namespace paceline
