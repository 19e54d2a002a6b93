// What measures energy: a counter of joules or a power in watts, and what it covers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/meter/meter_roots.h"

namespace paceline {

enum class Covered { node, modules, cpus, memory, gpus, platform };

// "node", "modules", "CPUs", "memory", "GPUs", "platform".
const char* to_string(Covered covered);

struct EnergyCounter {
  std::string meter;  // "RAPL", "Cray pm_counters", "hwmon", "NVML"
  std::string place;  // "CPU package 0", "memory of CPU package 0", "node", "GPU 0"
  Covered covered = Covered::node;
  bool is_power = false;  // watts, which have to be sampled; else joules from an arbitrary start
  double range = 0;       // joules after which it starts again at 0; 0: never
  double update_seconds = 0;  // how often it changes
  // Empty: it cannot be read now.
  std::function<std::optional<double>()> read;
};

// A meter that exists but cannot be read.
struct MeterTrouble {
  std::string what, cure;
};

struct EnergySources {
  std::vector<EnergyCounter> counters;
  std::vector<MeterTrouble> troubles;
};

// Opens a performance counter of a CPU for all processes. Returns a reader of its count, or an
// empty function if the kernel refuses.
using PerfOpener =
    std::function<std::function<std::optional<double>()>(int type, unsigned long config, int cpu)>;
PerfOpener kernel_perf();

// The counters of this node. Each source documents its files in its own .cpp.
EnergySources energy_sources(const MeterRoots& roots = meter_roots(),
                             const PerfOpener& perf = kernel_perf());

// One source each; they append what they find.
void find_rapl(const MeterRoots& roots, const PerfOpener& perf, EnergySources& found);
void find_cray_counters(const MeterRoots& roots, EnergySources& found);
void find_hwmon(const MeterRoots& roots, EnergySources& found);

}  // namespace paceline
