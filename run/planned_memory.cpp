#include "run/planned_memory.h"

#include <memory>

#include "engine/core/error.h"
#include "engine/core/find_factory.h"
#include "engine/device/table.h"
#include "engine/plan/plan.h"
#include "run/resolve.h"
#include "run/training_run.h"

namespace paceline {

namespace {

// On the CPU, in the precision of as many bytes: tf32 and fp16 are of GPUs.
std::unique_ptr<Device> make_device(const std::string& precision) {
  DeviceOptions options;
  options.precision = precision == "tf32" ? "fp32" : precision == "fp16" ? "bf16" : precision;
  const std::string name = precision == "fp64" ? "reference" : "cpu";
  if (const auto* row = find_factory(device_table(), name)) return row->make(options);
  throw Error(ErrorKind::usage, "device " + name + " is not built here", "",
              "give another --precision");
}

}  // namespace

MemoryUse planned_memory(const Workload& workload, const Point& parameters) {
  Point p = parameters;
  for (const auto& [name, value] : workload.defaults.values()) p.set_default(name, value);
  p.set_default("precision", std::string("fp32"));
  const Settings given(p);
  const auto device = make_device(given.text("precision"));
  const Plan plan =
      make_plan(network_of(workload, p), static_cast<int>(given.integer("batch_per_replica")),
                device->precision(), [&](const Operation& op) { return device->supports(op); });
  return memory_use(plan, optimizer_of(given.text("optimizer")), 0);
}

double planned_replica_bytes(const std::string& workload, const Point& parameters) {
  return static_cast<double>(planned_memory(make_workload(workload), parameters).total());
}

}  // namespace paceline
