#include "engine/meter/meter_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/core/environment.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

MeterRoots meter_roots() {
  const std::string folder = environment_value(environment_of_process(), "PACELINE_METER_ROOT");
  if (folder.empty()) return {};
  return {fs::path(folder) / "proc", fs::path(folder) / "sys"};
}

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return std::string(trim(line));
}

std::optional<double> leading_number(const std::string& line) {
  return to_real(split(line, ' ').front());
}

bool can_read(const fs::path& file) {
  return std::ifstream(file).good();
}

std::vector<fs::path> list_entries(const fs::path& folder, std::string_view beginning) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(beginning)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::function<std::optional<double>()> make_reader(const fs::path& file, double scale) {
  return [file, scale]() -> std::optional<double> {
    const auto number = leading_number(first_line(file));
    return number ? std::optional(*number * scale) : std::nullopt;
  };
}

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
