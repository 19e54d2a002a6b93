#include "engine/meter/kernel_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/core/text.h"

namespace paceline {

double seconds_a_tick() {
  const long ticks = sysconf(_SC_CLK_TCK);
  return ticks > 0 ? 1.0 / static_cast<double>(ticks) : 0.01;
}

std::optional<CpuTimes> cpu_times(const std::vector<int>& cpus, const MeterRoots& roots) {
  enum Field { user, nice, system, idle, iowait, irq, softirq, steal, kFields };
  CpuTimes times;
  std::ifstream file(roots.proc / "stat");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu")) break;  // they come first
    std::istringstream fields(line);
    std::string name;
    std::array<double, kFields> ticks{};
    fields >> name;
    for (double& tick : ticks) fields >> tick;
    const auto number = to_integer(name.substr(3));  // none in the line of their sum
    if (!fields || !number || std::find(cpus.begin(), cpus.end(), *number) == cpus.end()) continue;
    const double scale = seconds_a_tick();
    times.tasks += scale * (ticks[user] + ticks[nice] + ticks[system]);
    times.stolen += scale * ticks[steal];
    for (const double tick : ticks) times.all += scale * tick;
    ++times.cpus;
  }
  return times.cpus > 0 ? std::optional(times) : std::nullopt;
}

std::optional<LoadAverage> load_average(const MeterRoots& roots) {
  std::ifstream file(roots.proc / "loadavg");
  LoadAverage load;
  double five = 0, fifteen = 0;
  if (file >> load.one_minute >> five >> fifteen >> load.runnable) return load;
  return std::nullopt;
}

}  // namespace paceline
