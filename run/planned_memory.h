// Estimates the memory of a replica before it runs.
#pragma once

#include "engine/train/memory_use.h"
#include "results/parameters.h"
#include "workloads/workload.h"

namespace paceline {

// Plans a replica on the cpu device (for fp64 on `reference`), which fuses some layers. Uses
// batch_per_replica, precision, optimizer and variant of `parameters`, or the workload's defaults.
// Excludes the libraries' scratch. Throws usage if the device is not built.
MemoryUse planned_memory(const Workload& workload, const Point& parameters);

}  // namespace paceline
