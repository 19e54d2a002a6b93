#include "workloads/workload.h"

#include "engine/core/error.h"

namespace paceline {

Network network_of(const Workload& workload, const Point& parameters) {
  const auto variant = parameters.text("variant");
  if (!variant) return workload.network;
  if (!workload.variant) {
    throw Error(ErrorKind::usage, "workload " + workload.name + " has no variants", "",
                "leave variant out");
  }
  return workload.variant(*variant);
}

}  // namespace paceline
