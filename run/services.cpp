#include <fmt/format.h>

#include <map>
#include <set>

#include "engine/comm/backend.h"
#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/device.h"
#include "engine/launch/process_rank.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/diagnosis.h"
#include "run/gpus.h"
#include "run/plan_study.h"

namespace paceline {

namespace {

Service check_backend(const Factory<BackendFactory>& row, const ProcessRank& process,
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

// A device may compute in one precision only.
Service check_device(const Factory<DeviceFactory>& row) {
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

std::string reason_without_cores(const Layout& layout, bool oversubscribe) {
  static const int cpus = static_cast<int>(usable_cpus().size());
  const int replicas = layout.gpus / layout.nodes;
  if (layout.cpus_per_replica > cpus) {
    return fmt::format("{} CPUs a replica, and {} may be used", layout.cpus_per_replica, cpus);
  }
  if (replicas * layout.cpus_per_replica <= cpus || oversubscribe) return "";
  return fmt::format(
      "{} replicas of {} each on {}; --set oversubscribe=true tries it, and no interval counts its "
      "times",
      replicas, counted(layout.cpus_per_replica, "CPU"), counted(cpus, "usable CPU"));
}

// Remembers what a driver found, as it is slow and a study may have 100,000 points.
std::string reason_without_gpus(const std::string& device, const std::string& backend,
                                int replicas) {
  struct Seen {
    std::size_t gpus = 0;
    std::string why;
  };
  static std::map<std::string, Seen> seen;
  auto found = seen.find(device);
  if (found == seen.end()) {
    Seen now;
    if (const auto driver = load_driver(device)) now.gpus = driver->visible(now.why).size();
    found = seen.emplace(device, now).first;
  }
  const Seen& here = found->second;
  if (here.gpus == 0) return fmt::format("device {} needs a GPU: {}", device, here.why);
  if (static_cast<std::size_t>(replicas) <= here.gpus ||
      may_share_gpus(backend, environment_of_process())) {
    return "";
  }
  return fmt::format("{} replicas on {}", replicas, counted(here.gpus, "GPU"));
}

std::string reason_without_backend(const std::string& name) {
  static const std::set<std::string> need_gpus = [] {
    std::set<std::string> names;
    for (const auto& row : backend_table()) {
      if (row.make()->needs_gpus()) names.insert(row.name);
    }
    return names;
  }();
  if (!need_gpus.contains(name)) return "";
  return fmt::format("backend {} needs GPUs: --set device=cuda, or another backend", name);
}

// ", PCIe gen 5 x16, other GPUs: 7 by NV18"
std::string describe_links(const GpuDriver& driver, const std::string& pci) {
  GpuFacts facts;
  try {
    facts = driver.watch({pci})->stop().front();
  } catch (const Error&) {
    return "";  // no driver's library to ask
  }
  return (facts.pcie.empty() ? "" : ", PCIe " + facts.pcie) +
         (facts.links.empty() ? "" : ", other GPUs: " + facts.links);
}

}  // namespace

std::string describe_cards(const std::string& device) {
  const auto driver = load_driver(device.empty() ? first_gpu_device() : device);
  if (!driver) return "";
  const Topology machine = topology_of_machine();
  std::string why;
  std::vector<std::string> texts;
  for (const VisibleGpu& gpu : driver->visible(why)) {
    const Support support = driver->runs_on(gpu);
    const auto node = machine.numa_of_gpu(gpu.pci);
    texts.push_back(fmt::format("{}: {} ({}, {}{}{}){}", gpu.index, gpu.name, gpu.pci,
                                format_bytes(static_cast<double>(gpu.memory_bytes)),
                                node ? fmt::format(", NUMA node {}", *node) : "",
                                describe_links(*driver, gpu.pci),
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
      // Without its library the driver reports no power.
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
  std::vector<Service> services;
  for (const auto& row : backend_table())
    services.push_back(check_backend(row, process, gpu_device));
  for (const auto& row : device_table()) services.push_back(check_device(row));
  return services;
}

// Whether a point of a study can run on this machine, asked before its first run.

std::string reason_not_runnable(const PlannedPoint& planned) {
  const Point& p = planned.parameters;
  const Layout& layout = planned.layout;
  const std::string device = Settings(p).text("device");
  const std::string backend = p.text("backend").value_or(lone_backend());
  if (!layout.replicas_are_cores) {
    const std::string why = reason_without_gpus(device, backend, layout.gpus / layout.nodes);
    if (!why.empty()) return why;
  } else if (const std::string why = reason_without_backend(split_stack(backend).between);
             !why.empty()) {
    return why;
  }
  static const bool launched = find_process_rank(environment_of_process()).launched;
  if (layout.nodes > 1 && !launched) {
    return fmt::format("{} nodes, and a sweep runs on one: paceline submit", layout.nodes);
  }
  return reason_without_cores(layout, Settings(p).flag("oversubscribe"));
}

}  // namespace paceline
