// How busy others kept the CPUs of this process, between two readings. README.md says why it is
// judged so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/meter/kernel_files.h"
#include "engine/meter/meter_roots.h"

namespace paceline {

// What is absent the kernel does not tell. Shares are from 0 to 1.
struct MachineLoad {
  double seconds = 0;      // between the readings, as the kernel counted them
  double cpu_seconds = 0;  // of all these CPUs
  // Of cpu_seconds: what tasks of other processes had, and what the hypervisor took.
  std::optional<double> other_share, steal_share;
  std::optional<double> limited_share;   // of seconds: held back by a control group's CPU limit
  std::optional<double> pressure_share;  // of seconds: some task of the machine waited for a CPU
  std::optional<double> load_average;    // of the last minute, this process included
  std::optional<int> runnable_before, runnable_after;  // tasks of the machine, this one aside
  std::optional<std::int64_t> involuntary_switches;    // of all threads of this process
  std::optional<std::int64_t> heat_slowdowns;          // of these CPUs
  std::optional<double> mhz;                           // of these CPUs at the second reading, mean
};

constexpr double kBusyOtherShare = 0.05, kBusyStealShare = 0.02, kBusyLimitedShare = 0.02;
constexpr double kLeastBusySeconds = 0.05;  // five ticks

// "18 % of the time of its CPUs went to other processes"; empty: they were quiet, or nobody knows.
std::string busy_because(const MachineLoad& load);

// Whether a quiet machine can be told from a busy one.
inline bool tells_busy(const MachineLoad& load) {
  return load.other_share.has_value();
}

// What the kernel charged this process so far.
struct OwnUse {
  double cpu_seconds = 0;
  std::int64_t involuntary_switches = 0;
};
OwnUse own_use();

class LoadMeter {
 public:
  // Takes the first reading. `cpus` are those that this process's threads are bound to.
  explicit LoadMeter(std::vector<int> cpus, MeterRoots roots = {},
                     std::function<OwnUse()> own = own_use);
  // From that to now.
  MachineLoad read() const;

 private:
  struct Reading {
    OwnUse own;
    std::optional<CpuTimes> times;
    std::optional<double> limited, pressure;  // seconds since some time
    std::optional<std::int64_t> heat_slowdowns;
    std::optional<LoadAverage> load;
  };
  Reading take() const;

  std::vector<int> cpus_;
  MeterRoots roots_;
  std::function<OwnUse()> own_;
  Reading first_;
};

}  // namespace paceline
