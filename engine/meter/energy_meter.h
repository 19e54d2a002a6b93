// Adds up what energy counters counted while a run was in each of its parts.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/core/clock.h"
#include "engine/meter/energy_counter.h"

namespace paceline {

// A figure takes this many changes of its counter, times the square root of the number of times
// that its part was entered: each start and end is off by up to one change, independently. So a
// figure is good to about half a percent.
inline constexpr double kFewestUpdates = 100;

// Of one counter in one part.
struct EnergyReading {
  double joules = 0, seconds = 0;
  // Why the joules tell nothing: too short, stood still, lost. Empty: they do.
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
  ~EnergyWatch();
  EnergyWatch(const EnergyWatch&) = delete;
  EnergyWatch& operator=(const EnergyWatch&) = delete;

  void enter(std::size_t part);
  // The time in which every counter changes ten times, a second at most; 0 without counters.
  double glance_seconds() const;
  // Stops watching.
  const EnergyMeter& stop();

 private:
  void watch() noexcept;

  std::mutex mutex_;
  EnergyMeter meter_;
  double interval_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace paceline
