#include <fmt/format.h>

#include "engine/comm/table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/table.h"
#include "run/diagnosis.h"
#include "run/gpus.h"

namespace paceline {

namespace {

Service ask_backend(const Factory<BackendFactory>& row, const ProcessRank& process,
                    const std::string& gpu_device) {
  const auto backend = row.make();
  Membership membership{process, 1, {}};
  ChosenGpus gpus;
  if (backend->needs_gpus()) {
    try {
      gpus = ChosenGpus(gpu_device, row.name, process, 1);
    } catch (const Error& error) {
      return {"backend", row.name, false, error.what(), true};
    }
    membership.gpus = gpus.replicas();
    if (!membership.gpus) return {"backend", row.name, false, "no device of GPUs was built", true};
  }
  const Support support = backend->serves(membership);
  if (support) return {"backend", row.name, true, backend->description()};
  return {"backend", row.name, false, support.because()};
}

// A device need not compute in every precision.
Service ask_device(const Factory<DeviceFactory>& row) {
  Service service{"device", row.name, false, ""};
  if (const auto driver = load_driver(row.name)) {
    std::string why;
    const std::vector<VisibleGpu> gpus = driver->visible(why);
    if (gpus.empty()) return {"device", row.name, false, why, true};
    for (const VisibleGpu& gpu : gpus) {
      if (const Support support = driver->runs_on(gpu); !support) {
        return {"device", row.name, false, support.because()};
      }
    }
  }
  for (const char* precision : {"fp64", "fp32"}) {
    try {
      DeviceOptions options;
      options.precision = precision;
      service.description = row.make(options)->description();
      service.serves = true;
    } catch (const Error& error) {
      if (!service.serves) service.description = error.what();
    }
  }
  return service;
}

}  // namespace

std::string describe_cards(const std::string& device) {
  const auto driver = load_driver(device);
  if (!driver) return "";
  std::string why;
  std::vector<std::string> texts;
  for (const VisibleGpu& gpu : driver->visible(why)) {
    const Support support = driver->runs_on(gpu);
    texts.push_back(fmt::format("{}: {} ({}, {}){}", gpu.index, gpu.name, gpu.pci,
                                format_bytes(static_cast<double>(gpu.memory_bytes)),
                                support ? "" : ", of no use: " + support.because()));
  }
  return texts.empty() ? "none here: " + why : join(texts, "; ");
}

std::vector<Fact> gpu_meters() {
  const auto driver = load_driver(first_gpu_device());
  if (!driver) return {};
  std::string why;
  std::vector<Fact> facts;
  for (const VisibleGpu& gpu : driver->visible(why)) {
    GpuPower now;
    try {
      if (const auto read = driver->power_reader(gpu.pci)) now = read();
    } catch (const Error&) {
      // Without its library the driver tells nothing.
    }
    const std::string watts = now.watts ? fmt::format(", {:.3g} W now", *now.watts) : "";
    facts.push_back({fmt::format("GPU {}", gpu.index), now.joules  ? "energy counter" + watts
                                                       : now.watts ? "power, sampled" + watts
                                                                   : "neither counter nor power"});
  }
  return facts;
}

int count_gpus(const std::string& device) {
  const auto driver = load_driver(device);
  if (!driver) return 0;
  std::string why;
  int count = 0;
  for (const VisibleGpu& gpu : driver->visible(why)) count += driver->runs_on(gpu) ? 1 : 0;
  return count;
}

std::vector<Service> services(const ProcessRank& process, const std::string& device) {
  const std::string gpu_device =
      !device.empty() && is_gpu_device(device) ? device : first_gpu_device();
  std::vector<Service> asked;
  for (const auto& row : backend_table()) asked.push_back(ask_backend(row, process, gpu_device));
  for (const auto& row : device_table()) asked.push_back(ask_device(row));
  return asked;
}

}  // namespace paceline
