#include "run/planned_memory.h"

#include <algorithm>
#include <memory>

#include "engine/core/error.h"
#include "engine/core/find_factory.h"
#include "engine/device/table.h"
#include "engine/plan/plan.h"
#include "results/names.h"
#include "run/resolve.h"
#include "run/training_run.h"

namespace paceline {

namespace {

// On CPUs, in the precision of as many bytes: tf32 and fp16 are of GPUs.
std::unique_ptr<Device> make_device(const std::string& precision) {
  DeviceOptions options;
  options.precision = precision == "tf32" ? "fp32" : precision == "fp16" ? "bf16" : precision;
  for (const Name& device : known_names().devices) {
    const auto* row = find_factory(device_table(), device.name);
    const auto& known = device.precisions;
    const bool computes = std::find(known.begin(), known.end(), options.precision) != known.end();
    if (row && computes && !device.gpus) return row->make(options);
  }
  throw Error(ErrorKind::usage, "no CPU device of this build computes in " + precision, "",
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
      make_plan(make_network(workload, p), static_cast<int>(given.integer("batch_per_replica")),
                device->precision(), [&](const Operation& op) { return device->supports(op); });
  return memory_use(plan, parse_optimizer(given.text("optimizer")), 0);
}

double planned_replica_bytes(const std::string& workload, const Point& parameters) {
  return static_cast<double>(planned_memory(make_workload(workload), parameters).total());
}

}  // namespace paceline
