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
  const double smoothing = parameters.real("label_smoothing").value_or(0);
  const Value* literal = parameters.find("double_softmax");
  if (literal && std::get<bool>(*literal)) {
    if (smoothing > 0) {
      throw Error(ErrorKind::usage, "label_smoothing cannot be combined with double_softmax", "",
                  "leave one of them out");
    }
    network.softmax_twice();
  }
  return network.smooth_labels(smoothing);
}

}  // namespace paceline
