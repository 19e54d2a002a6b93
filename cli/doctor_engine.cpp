#include "cli/diagnosis.h"
#include "cli/gpus.h"
#include "engine/comm/table.h"
#include "engine/core/error.h"
#include "engine/device/table.h"

namespace paceline {

namespace {

Service ask_backend(const Factory<BackendFactory>& row, const Place& place) {
  const auto backend = row.make();
  const Membership membership{place, 1, {}};
  const Support support = backend->serves(membership);
  if (support) return {"backend", row.name, true, backend->description()};
  return {"backend", row.name, false, support.because()};
}

// A device need not compute in every precision.
Service ask_device(const Factory<DeviceFactory>& row) {
  Service service{"device", row.name, false, ""};
  if (const auto driver = driver_of(row.name)) {
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

std::vector<Service> services(const Place& place) {
  std::vector<Service> asked;
  for (const auto& row : backend_table()) asked.push_back(ask_backend(row, place));
  for (const auto& row : device_table()) asked.push_back(ask_device(row));
  return asked;
}

}  // namespace paceline
