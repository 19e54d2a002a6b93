// Small files of the kernel that more than one meter reads.
#pragma once

#include <optional>
#include <vector>

#include "engine/meter/meter_roots.h"

namespace paceline {

// Of some CPUs since the machine started, summed, in seconds.
struct CpuTimes {
  double tasks = 0;      // user, nice, system
  double stolen = 0;     // by the hypervisor
  double all = 0;        // these, interrupts and idleness: CPUs times seconds
  std::size_t cpus = 0;  // of those asked for that the kernel tells of
};

// Nothing where /proc/stat does not tell of any.
std::optional<CpuTimes> cpu_times(const std::vector<int>& cpus, const MeterRoots& roots);

struct LoadAverage {
  double one_minute = 0;
  int runnable = 0;  // tasks of the machine at this moment, the caller among them
};
std::optional<LoadAverage> load_average(const MeterRoots& roots);

double seconds_a_tick();

}  // namespace paceline
