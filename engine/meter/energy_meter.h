// Adds up what energy counters counted while a run was in each of its parts.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/core/clock.h"
#include "engine/meter/meter_files.h"

namespace paceline {

// What measures energy: a counter of joules or a power in watts, and what it covers.

enum class Covered { node, modules, cpus, memory, gpus, platform };

// "node", "modules", "CPUs", "memory", "GPUs", "platform".
const char* to_string(Covered covered);

struct EnergyCounter {
  std::string meter;  // "RAPL", "Cray pm_counters", "hwmon", "NVML"
  std::string place;  // "CPU package 0", "memory of CPU package 0", "node", "GPU 0"
  Covered covered = Covered::node;
  bool is_power = false;  // watts, which have to be sampled; else joules from an arbitrary start
  double range = 0;       // joules after which it starts again at 0; 0: never
  double update_seconds = 0;  // how often it changes
  // Empty: it cannot be read now.
  std::function<std::optional<double>()> read;
};

// A meter that exists but cannot be read.
struct MeterTrouble {
  std::string what, cure;
};

struct EnergySources {
  std::vector<EnergyCounter> counters;
  std::vector<MeterTrouble> troubles;
};

// Opens a performance counter of a CPU for all processes. Returns a reader of its count, or an
// empty function if the kernel refuses.
using PerfOpener =
    std::function<std::function<std::optional<double>()>(int type, unsigned long config, int cpu)>;
PerfOpener kernel_perf();

// The counters of this node. Each source documents its files in its own .cpp.
EnergySources energy_sources(const MeterRoots& roots = meter_roots(),
                             const PerfOpener& perf = kernel_perf());

// One source each; they append what they find.
void find_rapl(const MeterRoots& roots, const PerfOpener& perf, EnergySources& found);
void find_cray_counters(const MeterRoots& roots, EnergySources& found);
void find_hwmon(const MeterRoots& roots, EnergySources& found);

// A figure takes this many changes of its counter, times the square root of the number of times
// that its part was entered: each start and end is off by up to one change, independently. So a
// figure is good to about half a percent.
inline constexpr double kFewestUpdates = 100;

// What one counter measured in one part of a run.
struct EnergyReading {
  double joules = 0, seconds = 0;
  // Why the joules are not valid: too short, stood still, lost. Empty: they are.
  std::string trouble;

  double watts() const { return seconds > 0 ? joules / seconds : 0; }
};

// Starts in part 0. Not thread-safe; see EnergyWatch.
class EnergyMeter {
 public:
  EnergyMeter(std::vector<EnergyCounter> counters, std::size_t parts,
              std::function<double()> now = now_seconds);

  // Call more often than a counter starts again (a loaded CPU package: every few minutes), and for
  // powers as often as they change.
  void update();
  void enter(std::size_t part);

  const std::vector<EnergyCounter>& counters() const { return counters_; }
  // Up to the last update.
  EnergyReading reading(std::size_t counter, std::size_t part) const;

 private:
  struct Sum {
    double joules = 0, seconds = 0;
    int entered = 0;  // for longer than the counter takes to change
  };
  struct Watched {
    std::optional<double> last;  // joules, or watts
    bool is_lost = false;
    std::vector<Sum> sums;  // one per part
  };

  std::vector<EnergyCounter> counters_;
  std::vector<Watched> watched_;
  std::function<double()> now_;
  std::size_t part_ = 0;
  double entered_at_ = 0, last_ = 0;
};

// Keeps a meter up to date on a thread of its own: once a second, or as often as a power changes.
// Without counters there is no thread. Thread-safe.
class EnergyWatch {
 public:
  EnergyWatch(std::vector<EnergyCounter> counters, std::size_t parts);
  EnergyWatch(const EnergyWatch&) = delete;
  EnergyWatch& operator=(const EnergyWatch&) = delete;

  void enter(std::size_t part);
  // The time in which every counter changes ten times, a second at most; 0 without counters.
  double glance_seconds() const;
  // Stops watching.
  const EnergyMeter& stop();

 private:
  void watch(const std::stop_token& stop) noexcept;

  std::mutex mutex_;
  EnergyMeter meter_;
  double interval_;
  std::jthread thread_;  // last: it ends first
};

}  // namespace paceline
