#include "workloads/workload.h"

#include "engine/core/error.h"

namespace paceline {

Network make_network(const Workload& workload, const NetworkConfig& config) {
  if (config.variant && !workload.variant) {
    throw Error(ErrorKind::usage, "workload " + workload.name + " has no variants", "",
                "leave variant out");
  }
  Network network = config.variant ? workload.variant(*config.variant) : workload.network;
  return network.set_loss(config.loss);
}

}  // namespace paceline
