// The energy counters of this machine: what each covers, and how many joules it counted.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/clock.h"
#include "engine/meter/meter_roots.h"

namespace paceline {

struct EnergyCounter {
  enum class Unit { microjoules, joules, microwatts };

  std::string meter;   // "RAPL", "Cray pm_counters", "hwmon"
  std::string covers;  // "CPU package 0", "memory of CPU package 0", "node", "GPU 0"
  std::filesystem::path file;
  Unit unit = Unit::microjoules;
  double range = 0;           // joules after which it starts again at 0; 0: never
  double update_seconds = 0;  // how often it changes

  bool is_power() const { return unit == Unit::microwatts; }
};

// A meter that exists but cannot be read, or none at all.
struct MeterTrouble {
  std::string what, cure;
};

struct EnergySources {
  std::vector<EnergyCounter> counters;
  std::vector<MeterTrouble> troubles;
};

// RAPL through powercap (Linux documentation, power/powercap/powercap.rst), Cray's pm_counters
// (/sys/cray/pm_counters: "1234 J 1700000000000000 us"), and hwmon's averaged power, as on NVIDIA
// Grace (its documentation names the rails in power1_oem_info).
EnergySources energy_sources(const MeterRoots& roots = {});

// No figure is made of fewer changes of a counter.
constexpr double kFewestUpdates = 100;

struct EnergyReading {
  EnergyCounter counter;
  double joules = 0, seconds = 0;
  // Why the joules tell nothing: too short, stood still, lost. Empty: they do.
  std::string trouble;

  double watts() const { return seconds > 0 ? joules / seconds : 0; }
};

// Adds up the joules from its construction on. update() has to be called more often than a counter
// starts again (a loaded CPU package: every few minutes), and for powers as often as they change.
class EnergyMeter {
 public:
  explicit EnergyMeter(std::vector<EnergyCounter> counters,
                       std::function<double()> now = now_seconds);

  void update();
  std::vector<EnergyReading> readings() const;  // up to the last update

 private:
  struct Watched {
    EnergyCounter counter;
    std::optional<double> last;  // joules, or watts
    double joules = 0;
    bool is_lost = false;
  };

  std::vector<Watched> watched_;
  std::function<double()> now_;
  double start_ = 0, last_ = 0;
};

}  // namespace paceline
