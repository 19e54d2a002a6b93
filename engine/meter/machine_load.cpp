#include "engine/meter/machine_load.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "engine/core/text.h"
#include "engine/meter/meter_files.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

std::optional<double> read_number(const fs::path& file) {
  std::ifstream stream(file);
  double number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// The value of a key in a file of lines "key value".
std::optional<double> read_value(const fs::path& file, const std::string& wanted) {
  std::ifstream stream(file);
  std::string key;
  double value = 0;
  while (stream >> key >> value) {
    if (key == wanted) return value;
  }
  return std::nullopt;
}

// How long a CPU limit has held this process back: the maximum over its control group and those
// above it, any of which may have the limit.
std::optional<double> limited_seconds(const MeterRoots& roots) {
  std::optional<double> most;
  std::ifstream groups(roots.proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b", or of version 1 "9:cpu:/a"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version_1 = controllers.find(",cpu,") != std::string::npos;
    if (!version_1 && controllers != ",,") continue;
    const fs::path root = roots.sys / (version_1 ? "fs/cgroup/cpu" : "fs/cgroup");
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (bool at_root = false; !at_root; group = group.parent_path()) {
      at_root = group.empty();
      const fs::path file = root / group / "cpu.stat";
      const auto value = read_value(file, version_1 ? "throttled_time" : "throttled_usec");
      if (value) most = std::max(most.value_or(0), *value * (version_1 ? 1e-9 : 1e-6));
    }
  }
  return most;
}

// The total of "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", which is in microseconds.
std::optional<double> pressure_seconds(const MeterRoots& roots) {
  std::ifstream file(roots.proc / "pressure/cpu");
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find("total=");
    if (!line.starts_with("some") || at == std::string::npos) continue;
    return std::strtod(line.c_str() + at + 6, nullptr) * 1e-6;
  }
  return std::nullopt;
}

fs::path folder_of_cpu(int cpu, const MeterRoots& roots) {
  return roots.sys / fmt::format("devices/system/cpu/cpu{}", cpu);
}

std::optional<std::int64_t> thermal_throttles(const std::vector<int>& cpus,
                                              const MeterRoots& roots) {
  std::optional<std::int64_t> sum;
  for (const int cpu : cpus) {
    const auto count =
        read_number(folder_of_cpu(cpu, roots) / "thermal_throttle/core_throttle_count");
    if (count) sum = sum.value_or(0) + static_cast<std::int64_t>(*count);
  }
  return sum;
}

std::optional<double> mean_mhz(const std::vector<int>& cpus, const MeterRoots& roots) {
  const auto khz = known_values(cpus, [&](int cpu) {
    return read_number(folder_of_cpu(cpu, roots) / "cpufreq/scaling_cur_freq");
  });
  if (khz.empty()) return std::nullopt;
  return summed(khz, std::identity()) / 1e3 / static_cast<double>(khz.size());
}

template <typename T>
std::optional<T> increase(const std::optional<T>& before, const std::optional<T>& now) {
  if (!before || !now) return std::nullopt;
  return std::max(T{}, *now - *before);
}

fact::Count count_others(const std::optional<LoadAverage>& load) {
  return load ? fact::Count(std::max(0, load->runnable - 1)) : std::nullopt;
}

bool exceeds(const fact::Real& share, double limit, const fact::Real& of_seconds) {
  return share && *share >= limit && *share * of_seconds.value_or(0) >= kLeastBusySeconds;
}

constexpr double kLeastCpus = 0.05;
constexpr std::size_t kMostNamed = 3;

struct Task {
  std::string name;
  int parent = 0, cpu = -1;
  double seconds = 0;  // of CPU, all its threads
};
using Tasks = std::map<int, Task>;  // by process number

// Parses "12 (a name) S 1 ...". Names may contain blanks and brackets.
std::optional<Task> read_task(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  const auto open = line.find('('), close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Task task;
  for (const char c : line.substr(open + 1, close - open - 1)) {
    task.name += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  }
  // After the name: 3 state, 4 parent, ..., 14 user time, 15 system time, ..., 39 CPU.
  std::istringstream rest(line.substr(close + 1));
  std::string word;
  for (int field = 3; rest >> word; ++field) {
    const auto number = to_integer(word);
    if (field == 4) task.parent = static_cast<int>(number.value_or(0));
    if (field == 14 || field == 15) {
      task.seconds += static_cast<double>(number.value_or(0)) * seconds_a_tick();
    }
    if (field == 39) task.cpu = static_cast<int>(number.value_or(-1));
  }
  return task;
}

Tasks read_tasks(const MeterRoots& roots) {
  Tasks tasks;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(roots.proc, none)) {
    const auto number = to_integer(entry.path().filename().string());
    if (!number) continue;
    if (auto task = read_task(entry.path() / "stat")) {
      tasks[static_cast<int>(*number)] = std::move(*task);
    }
  }
  return tasks;
}

// This process and its ancestors.
std::set<int> own_ancestry(const Tasks& tasks) {
  std::set<int> line;
  for (int process = static_cast<int>(getpid()); process > 0 && line.insert(process).second;) {
    const auto found = tasks.find(process);
    process = found == tasks.end() ? 0 : found->second.parent;
  }
  return line;
}

bool is_peer(const Task& task, const Tasks& tasks) {
  const auto mine = tasks.find(static_cast<int>(getpid()));
  return mine != tasks.end() && task.parent == mine->second.parent &&
         task.name == mine->second.name;
}

}  // namespace

std::string busy_because(const LoadFacts& load) {
  if (exceeds(load.other_cpu_share, kBusyOtherShare, load.cpu_seconds)) {
    return fmt::format("{:.0f} % of the time of its CPUs went to other processes",
                       100 * *load.other_cpu_share);
  }
  if (exceeds(load.steal_share, kBusyStealShare, load.cpu_seconds)) {
    return fmt::format("the hypervisor took {:.0f} % of the time of its CPUs",
                       100 * *load.steal_share);
  }
  if (exceeds(load.cpu_limited_share, kBusyLimitedShare, load.seconds)) {
    return fmt::format("a CPU limit of its control group held it back for {:.0f} % of the time",
                       100 * std::min(1.0, *load.cpu_limited_share));
  }
  if (load.thermal_throttles.value_or(0) > 0) {
    return fmt::format("heat slowed its CPUs down {} times", *load.thermal_throttles);
  }
  return "";
}

OwnUse own_use() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  constexpr std::int64_t kKilobyte = 1024;  // getrusage(2)
  return {seconds(use.ru_utime) + seconds(use.ru_stime), use.ru_nivcsw, use.ru_maxrss * kKilobyte};
}

LoadMeter::LoadMeter(std::vector<int> cpus, MeterRoots roots, std::function<OwnUse()> own)
    : cpus_(std::move(cpus)), roots_(std::move(roots)), own_(std::move(own)), first_(take()) {}

LoadMeter::Reading LoadMeter::take() const {
  return {own_(),
          cpu_times(cpus_, roots_),
          limited_seconds(roots_),
          pressure_seconds(roots_),
          thermal_throttles(cpus_, roots_),
          load_average(roots_)};
}

LoadFacts LoadMeter::read() const {
  const Reading now = take();
  LoadFacts load;
  load.involuntary_switches = now.own.involuntary_switches - first_.own.involuntary_switches;
  if (now.own.peak_memory > 0) load.peak_memory_bytes = now.own.peak_memory;
  load.thermal_throttles = increase(first_.thermal_throttles, now.thermal_throttles);
  load.runnable_tasks_before = count_others(first_.load);
  load.runnable_tasks_after = count_others(now.load);
  if (now.load) load.load_average = now.load->one_minute;
  load.least_mhz = mean_mhz(cpus_, roots_);
  if (!first_.times || !now.times || !(now.times->all > first_.times->all)) return load;
  const CpuTimes &before = *first_.times, &after = *now.times;
  const double cpu_seconds = after.all - before.all;
  const double seconds = cpu_seconds / static_cast<double>(after.cpus);
  load.cpu_seconds = cpu_seconds;
  load.seconds = seconds;
  const double own = now.own.cpu_seconds - first_.own.cpu_seconds;
  const double others = after.tasks - before.tasks - own;
  load.other_cpu_share = std::clamp(others / cpu_seconds, 0.0, 1.0);
  load.steal_share = std::clamp((after.stolen - before.stolen) / cpu_seconds, 0.0, 1.0);
  if (const auto limited = increase(first_.limited, now.limited)) {
    load.cpu_limited_share = *limited / seconds;
  }
  if (const auto pressure = increase(first_.pressure, now.pressure)) {
    load.cpu_pressure_share = std::min(1.0, *pressure / seconds);
  }
  return load;
}

std::vector<BusyTask> busy_tasks(const std::vector<int>& cpus, const std::function<void()>& pause,
                                 const MeterRoots& roots) {
  const Tasks before = read_tasks(roots);
  const auto times_before = cpu_times(cpus, roots);
  pause();
  const Tasks now = read_tasks(roots);
  const auto times_now = cpu_times(cpus, roots);
  if (!times_before || !times_now || !(times_now->all > times_before->all)) return {};
  const double seconds =
      (times_now->all - times_before->all) / static_cast<double>(times_now->cpus);
  const std::set<int> ours = own_ancestry(now);
  std::map<std::string, double> used;
  for (const auto& [process, task] : now) {
    const auto earlier = before.find(process);
    const bool is_here = std::find(cpus.begin(), cpus.end(), task.cpu) != cpus.end();
    if (earlier == before.end() || !is_here || ours.contains(process)) continue;
    if (is_peer(task, now)) continue;
    used[task.name] += (task.seconds - earlier->second.seconds) / seconds;
  }
  std::vector<BusyTask> busiest;
  for (const auto& [name, busy] : used) {
    if (busy >= kLeastCpus) busiest.push_back({name, busy});
  }
  std::ranges::stable_sort(busiest, std::ranges::greater{}, &BusyTask::cpus);
  return busiest;
}

std::string to_text(const std::vector<BusyTask>& tasks) {
  return join_first(kMostNamed, mapped(tasks, [](const BusyTask& task) {
                      return fmt::format("{} ({:.1f} CPUs)", task.name, task.cpus);
                    }));
}

}  // namespace paceline
