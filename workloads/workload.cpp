#include "workloads/workload.h"

#include "engine/core/error.h"

namespace paceline {

namespace {

Network variant_of(const Workload& workload, const Point& parameters) {
  const auto variant = parameters.text("variant");
  if (!variant) return workload.network;
  if (!workload.variant) {
    throw Error(ErrorKind::usage, "workload " + workload.name + " has no variants", "",
                "leave variant out");
  }
  return workload.variant(*variant);
}

}  // namespace

Network network_of(const Workload& workload, const Point& parameters) {
  Network network = variant_of(workload, parameters);
  return network.smooth_labels(parameters.real("label_smoothing").value_or(0));
}

}  // namespace paceline
