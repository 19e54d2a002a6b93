#include "cli/planned_memory.h"

#include <memory>

#include "cli/resolve.h"
#include "cli/run.h"
#include "engine/core/error.h"
#include "engine/device/table.h"
#include "engine/plan/plan.h"

namespace paceline {

namespace {

std::string text_or(const Point& first, const Point& second, const char* name,
                    const char* otherwise) {
  const auto text = first.text(name);
  return text ? *text : second.text(name).value_or(otherwise);
}

// On the CPU, in the precision of as many bytes: tf32 and fp16 are of GPUs.
std::unique_ptr<Device> make_device(const std::string& precision) {
  DeviceOptions options;
  options.precision = precision == "tf32" ? "fp32" : precision == "fp16" ? "bf16" : precision;
  const std::string name = precision == "fp64" ? "reference" : "cpu";
  for (const auto& row : device_table()) {
    if (name == row.name) return row.make(options);
  }
  throw Error(ErrorKind::usage, "device " + name + " is not built here", "",
              "give another --precision");
}

}  // namespace

MemoryUse planned_memory(const Workload& workload, const Point& parameters) {
  const auto given = parameters.integer("batch_per_replica");
  const auto batch = given ? *given : workload.defaults.integer("batch_per_replica").value_or(1);
  const auto device = make_device(text_or(parameters, workload.defaults, "precision", "fp32"));
  const Plan plan =
      make_plan(network_of(workload, parameters), static_cast<int>(batch), device->precision(),
                [&](const Operation& op) { return device->supports(op); });
  const Optimizer optimizer =
      optimizer_of(text_or(parameters, workload.defaults, "optimizer", "adam"));
  return memory_use(plan, optimizer, 0);
}

double planned_replica_bytes(const std::string& workload, const Point& parameters) {
  return static_cast<double>(planned_memory(make_workload(workload), parameters).total());
}

}  // namespace paceline
