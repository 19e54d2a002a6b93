// Small kernel files that several meters read.
#pragma once

#include <optional>
#include <vector>

#include "engine/meter/meter_roots.h"

namespace paceline {

// Times of some CPUs since boot, summed, in seconds.
struct CpuTimes {
  double tasks = 0;      // user, nice, system
  double stolen = 0;     // by the hypervisor
  double all = 0;        // including interrupts and idle time: CPUs times seconds
  std::size_t cpus = 0;  // number of the requested CPUs that the kernel reports
};

// Empty if /proc/stat reports none of them.
std::optional<CpuTimes> cpu_times(const std::vector<int>& cpus, const MeterRoots& roots);

struct LoadAverage {
  double one_minute = 0;
  int runnable = 0;  // runnable tasks of the machine now, including the caller
};
std::optional<LoadAverage> load_average(const MeterRoots& roots);

double seconds_a_tick();

}  // namespace paceline
