#include "engine/meter/busy_tasks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "engine/core/text.h"
#include "engine/meter/kernel_files.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr double kLeastCpus = 0.05;
constexpr std::size_t kMostNamed = 3;

struct Task {
  std::string name;
  int parent = 0, cpu = -1;
  double seconds = 0;  // of CPU, all its threads
};
using Tasks = std::map<int, Task>;  // by process number

// "12 (a name) S 1 ...": names may have blanks and brackets in them.
std::optional<Task> task_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  const auto open = line.find('('), close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Task task;
  for (const char c : line.substr(open + 1, close - open - 1)) {
    task.name += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  }
  // Behind the name: 3 state, 4 parent, ..., 14 user time, 15 system time, ..., 39 CPU.
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

Tasks tasks_now(const MeterRoots& roots) {
  Tasks tasks;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(roots.proc, none)) {
    const auto number = to_integer(entry.path().filename().string());
    if (!number) continue;
    if (auto task = task_in(entry.path() / "stat")) {
      tasks[static_cast<int>(*number)] = std::move(*task);
    }
  }
  return tasks;
}

std::set<int> this_and_above(const Tasks& tasks) {
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

std::vector<BusyTask> busy_tasks(const std::vector<int>& cpus, const std::function<void()>& pause,
                                 const MeterRoots& roots) {
  const Tasks before = tasks_now(roots);
  const auto times_before = cpu_times(cpus, roots);
  pause();
  const Tasks now = tasks_now(roots);
  const auto times_now = cpu_times(cpus, roots);
  if (!times_before || !times_now || !(times_now->all > times_before->all)) return {};
  const double seconds =
      (times_now->all - times_before->all) / static_cast<double>(times_now->cpus);
  const std::set<int> ours = this_and_above(now);
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
  std::stable_sort(busiest.begin(), busiest.end(),
                   [](const BusyTask& a, const BusyTask& b) { return a.cpus > b.cpus; });
  return busiest;
}

std::string to_text(const std::vector<BusyTask>& tasks) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(tasks.size(), kMostNamed); ++i) {
    parts.push_back(fmt::format("{} ({:.1f} CPUs)", tasks[i].name, tasks[i].cpus));
  }
  std::string text = join(parts, ", ");
  if (tasks.size() > kMostNamed) text += fmt::format(" and {} more", tasks.size() - kMostNamed);
  return text;
}

}  // namespace paceline
