#include "cli/diagnosis.h"
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
