// The driver of a GPU device: which GPUs this process sees.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/backend_stack.h"
#include "engine/facts/hardware.h"

namespace paceline {

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
  virtual std::vector<GpuFacts> stop() = 0;
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
