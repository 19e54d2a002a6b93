// The driver of a GPU device: which GPUs this process sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/backend_stack.h"

namespace paceline {

// How a run used a GPU, for the record.

// One GPU over one run. Means and shares are over samples.
struct GpuUtilization {
  std::string pci, name, uuid, driver;
  int samples = 0;
  double seconds = 0;
  std::optional<double> utilization, memory_utilization;  // 0 to 1, as published tables give it
  std::optional<double> sm_mhz, memory_mhz;               // means
  std::optional<int> least_sm_mhz, most_sm_mhz;           // lowest seen; maximum of the card
  std::optional<double> watts, watts_limit;               // mean; limit in force
  std::optional<double> joules;                           // from the card's energy counter
  std::optional<int> celsius;                             // maximum
  // Maximum in use by all processes; total.
  std::optional<std::int64_t> memory_bytes, memory_bytes_total;
  std::optional<std::int64_t> uncorrected_errors;  // ECC errors during the run
  std::optional<bool> ecc, mig, mps;
  std::optional<std::string> compute_mode;

  // Everything that limited the clocks in some sample, except idleness: "power cap", "hardware
  // thermal".
  std::vector<std::string> clock_limits;
  std::optional<double> power_capped_share;
  // Slowed by heat or failing power in any sample: such a run is excluded from comparisons. A power
  // cap does not count, because large cards run at theirs all the time.
  std::optional<bool> throttled;
};

struct VisibleGpu {
  int index = -1;               // among the visible ones, in the driver's order
  std::string name, pci, uuid;  // "NVIDIA H200", "0000:1b:00.0", "GPU-5c8b..."
  int major = 0, minor = 0;     // compute capability
  std::size_t memory_bytes = 0;
};

// Samples GPUs from construction on.
class GpuWatch {
 public:
  virtual ~GpuWatch() = default;
  // Stops sampling. Returns one entry per GPU, in order. Call once.
  virtual std::vector<GpuUtilization> stop() = 0;
};

// Empty: the driver or the card does not tell.
struct GpuPower {
  std::optional<double> joules;  // counted from an arbitrary start
  std::optional<double> watts;
};

class GpuDriver {
 public:
  virtual ~GpuDriver() = default;
  // If there are none, `why` says why.
  virtual std::vector<VisibleGpu> visible(std::string& why) const = 0;
  // Whether this build supports it.
  virtual Support runs_on(const VisibleGpu& gpu) const = 0;
  // Makes it the current device of the calling thread. Throws internal.
  virtual void select(int index) const = 0;
  // Throws usage if the driver's library is unavailable.
  virtual std::unique_ptr<GpuWatch> watch(const std::vector<std::string>& pcis) const = 0;
  // Reads the power of one GPU; an empty function if the driver cannot. Both change about ten times
  // a second.
  virtual std::function<GpuPower()> power_reader(const std::string&) const { return {}; }
  // Zeroes memory on the current device. Blocks.
  virtual void clear(void* data, std::size_t bytes) const = 0;
};

using DriverFactory = std::unique_ptr<GpuDriver> (*)();

}  // namespace paceline
