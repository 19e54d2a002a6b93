// Who else uses some CPUs right now.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/meter/meter_roots.h"

namespace paceline {

struct BusyTask {
  std::string name;  // as the kernel has it: printable, 15 characters at most
  double cpus = 0;   // how many it kept busy
};

// Processes that were on one of `cpus` after `pause` and kept at least a twentieth of one busy
// during it, those of one name together, the busiest first: but not this process and those that
// wait for it, nor its peers, which have its name and its parent. Where other users' processes are
// hidden they are not among them.
std::vector<BusyTask> busy_tasks(const std::vector<int>& cpus, const std::function<void()>& pause,
                                 const MeterRoots& roots = {});

// "python3 (1.0 CPUs), cc1plus (0.6 CPUs) and 2 more"
std::string text_of(const std::vector<BusyTask>& tasks);

}  // namespace paceline
