// Shared by the MNIST workloads: the data set and the guides' defaults.
#pragma once

#include "workloads/workload.h"

namespace paceline {

// Adam with rate 0.001 (not scaled), batch 64 per replica, incomplete last batch kept.
Workload mnist_workload(std::string name, std::string summary, Network network);

}  // namespace paceline
