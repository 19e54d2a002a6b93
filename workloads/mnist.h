// What the MNIST workloads share: the data set and the guides' defaults.
#pragma once

#include "workloads/workload.h"

namespace paceline {

// Adam 0.001 not scaled with replicas, batch 64 a replica, incomplete last batch kept.
Workload mnist_workload(std::string name, std::string summary, Network network);

}  // namespace paceline
