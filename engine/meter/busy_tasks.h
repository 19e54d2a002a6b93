// Finds other processes that use some CPUs right now.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/meter/meter_roots.h"

namespace paceline {

struct BusyTask {
  std::string name;  // from the kernel: printable, at most 15 characters
  double cpus = 0;   // number of CPUs it kept busy
};

// Processes that were on one of `cpus` after `pause` and kept at least a twentieth of a CPU busy
// during it. Groups them by name, busiest first. Excludes this process, processes that wait for it,
// and its peers (same name and parent). Cannot see other users' processes if those are hidden.
std::vector<BusyTask> busy_tasks(const std::vector<int>& cpus, const std::function<void()>& pause,
                                 const MeterRoots& roots = {});

// "python3 (1.0 CPUs), cc1plus (0.6 CPUs) and 2 more"
std::string to_text(const std::vector<BusyTask>& tasks);

}  // namespace paceline
