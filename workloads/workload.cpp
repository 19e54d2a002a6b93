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
  const Value* literal = parameters.find("literal_guide_loss");
  if (literal && std::get<bool>(*literal)) network.softmax_twice();
  return network;
}

}  // namespace paceline
