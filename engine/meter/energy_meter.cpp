#include "engine/meter/energy_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>

#include "engine/core/child.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kOftenest = 0.05, kSeldomest = 1;  // seconds between two updates
constexpr double kGlanceUpdates = 10, kLongestGlance = 1;

double poll_interval(const std::vector<EnergyCounter>& counters) {
  double interval = kSeldomest;
  for (const EnergyCounter& counter : counters) {
    if (counter.is_power) interval = std::min(interval, counter.update_seconds);
  }
  return std::max(interval, kOftenest);
}

// Empty: it began anew, nobody knows when.
std::optional<double> joules_between(const EnergyCounter& counter, double last, double now,
                                     double seconds) {
  if (counter.is_power) return (last + now) / 2 * seconds;
  if (now >= last) return now - last;
  if (counter.range > last) return counter.range - last + now;
  return std::nullopt;
}

}  // namespace

constexpr EnumName<Covered> kCoveredNames[] = {
    {Covered::node, "node"},     {Covered::modules, "modules"}, {Covered::cpus, "CPUs"},
    {Covered::memory, "memory"}, {Covered::gpus, "GPUs"},       {Covered::platform, "platform"}};

const char* to_string(Covered covered) {
  return name_in(kCoveredNames, covered);
}

EnergySources energy_sources(const MeterRoots& roots, const PerfOpener& perf) {
  EnergySources found;
  find_cray_counters(roots, found);
  find_rapl(roots, perf, found);
  find_hwmon(roots, found);
  return found;
}

EnergyMeter::EnergyMeter(std::vector<EnergyCounter> counters, std::size_t parts,
                         std::function<double()> now)
    : counters_(std::move(counters)),
      now_(std::move(now)),
      entered_at_(now_()),
      last_(entered_at_) {
  for (const EnergyCounter& counter : counters_) {
    Watched& watched = watched_.emplace_back();
    watched.last = counter.read();
    watched.is_lost = !watched.last;
    watched.sums.resize(parts);
  }
}

void EnergyMeter::update() {
  const double now = now_();
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    Watched& watched = watched_[i];
    Sum& sum = watched.sums[part_];
    const auto value = counters_[i].read();
    sum.seconds += now - last_;
    const auto joules = value && watched.last
                            ? joules_between(counters_[i], *watched.last, *value, now - last_)
                            : std::nullopt;
    watched.is_lost = watched.is_lost || !joules;
    sum.joules += joules.value_or(0);
    watched.last = value;
  }
  last_ = now;
}

void EnergyMeter::enter(std::size_t part) {
  update();
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    if (last_ - entered_at_ > counters_[i].update_seconds) ++watched_[i].sums[part_].entered;
  }
  part_ = part;
  entered_at_ = last_;
}

EnergyReading EnergyMeter::reading(std::size_t counter, std::size_t part) const {
  const Watched& watched = watched_[counter];
  const Sum& sum = watched.sums[part];
  EnergyReading reading{sum.joules, sum.seconds, ""};
  const double update = std::max(counters_[counter].update_seconds, 1e-9);
  const int times = std::max(1, sum.entered);
  const double needed = update * kFewestUpdates * std::sqrt(times);
  if (watched.is_lost) {
    reading.trouble = "it could not be read all the time";
  } else if (sum.seconds < needed) {
    reading.trouble = fmt::format("{:.3g} s {}are too short: it takes {:.3g} s", sum.seconds,
                                  times > 1 ? fmt::format("in {} parts ", times) : "", needed);
  } else if (sum.joules <= 0) {
    reading.trouble = "it stood still";
  }
  return reading;
}

EnergyWatch::EnergyWatch(std::vector<EnergyCounter> counters, std::size_t parts)
    : meter_(std::move(counters), parts), interval_(poll_interval(meter_.counters())) {
  if (meter_.counters().empty()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void EnergyWatch::watch(const std::stop_token& stop) noexcept {
  block_signals();
  const std::chrono::duration<double> interval(interval_);
  const auto stops = [&stop] { return stop.stop_requested(); };
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex_);
  while (!stopped.wait_for(lock, stop, interval, stops)) meter_.update();
}

void EnergyWatch::enter(std::size_t part) {
  const std::lock_guard lock(mutex_);
  meter_.enter(part);
}

double EnergyWatch::glance_seconds() const {
  double slowest = 0;
  for (const EnergyCounter& counter : meter_.counters()) {
    slowest = std::max(slowest, counter.update_seconds);
  }
  return std::min(kGlanceUpdates * slowest, kLongestGlance);
}

const EnergyMeter& EnergyWatch::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
    meter_.update();
  }
  return meter_;
}

}  // namespace paceline
