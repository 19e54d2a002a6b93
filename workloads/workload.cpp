#include "workloads/workload.h"

#include "engine/core/error.h"

namespace paceline {

namespace {

Network find_variant(const Workload& workload, const Point& parameters) {
  const auto variant = parameters.text("variant");
  if (!variant) return workload.network;
  if (!workload.variant) {
    throw Error(ErrorKind::usage, "workload " + workload.name + " has no variants", "",
                "leave variant out");
  }
  return workload.variant(*variant);
}

}  // namespace

Network make_network(const Workload& workload, const Point& parameters) {
  Network network = find_variant(workload, parameters);
  const Value* twice = parameters.find("double_softmax");
  if (twice && std::get<bool>(*twice)) network.softmax_twice();
  return network.smooth_labels(parameters.real("label_smoothing").value_or(0));
}

}  // namespace paceline
