// How busy other processes kept this process's CPUs between two readings. README.md explains the
// criteria.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/facts/hardware.h"
#include "engine/meter/meter_files.h"

namespace paceline {

constexpr double kBusyOtherShare = 0.05, kBusyStealShare = 0.02, kBusyLimitedShare = 0.02;
constexpr double kLeastBusySeconds = 0.05;  // five ticks

// "18 % of the time of its CPUs went to other processes". Empty: not busy, or unknown.
std::string busy_because(const LoadFacts& load);

// Whether the load tells if the machine was busy.
inline bool shows_busy(const LoadFacts& load) {
  return load.other_cpu_share.has_value();
}

// Resources that the kernel charged to this process so far.
struct OwnUse {
  double cpu_seconds = 0;
  std::int64_t involuntary_switches = 0;
  std::int64_t peak_memory = 0;  // bytes; 0: unknown
};
OwnUse own_use();

class LoadMeter {
 public:
  // Takes the first reading. `cpus` are the CPUs to which this process's threads are bound.
  explicit LoadMeter(std::vector<int> cpus, MeterRoots roots = {},
                     std::function<OwnUse()> own = own_use);
  // The load of this process's CPUs between construction and now.
  LoadFacts read() const;

 private:
  struct Reading {
    OwnUse own;
    std::optional<CpuTimes> times;
    std::optional<double> limited, pressure;  // seconds since an arbitrary time
    std::optional<std::int64_t> thermal_throttles;
    std::optional<LoadAverage> load;
  };
  Reading take() const;

  std::vector<int> cpus_;
  MeterRoots roots_;
  std::function<OwnUse()> own_;
  Reading first_;
};

// Finds other processes that use some CPUs right now.

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
