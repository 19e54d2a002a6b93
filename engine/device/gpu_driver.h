// What a device of GPUs tells before there is a replica: which of them this process sees.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/support.h"
#include "engine/device/gpu_utilization.h"

namespace paceline {

struct VisibleGpu {
  int index = -1;               // among the visible ones, as the driver numbers them
  std::string name, pci, uuid;  // "NVIDIA H200", "0000:1b:00.0", "GPU-5c8b..."
  int major = 0, minor = 0;     // compute capability
  std::size_t memory_bytes = 0;
};

// Samples GPUs from when it is made.
class GpuWatch {
 public:
  virtual ~GpuWatch() = default;
  // Ends it; one for each GPU, in order. Once.
  virtual std::vector<GpuUtilization> stop() = 0;
};

class GpuDriver {
 public:
  virtual ~GpuDriver() = default;
  // None: `why` says why there are none.
  virtual std::vector<VisibleGpu> visible(std::string& why) const = 0;
  // Whether this build runs on it.
  virtual Support runs_on(const VisibleGpu& gpu) const = 0;
  // Makes it the calling thread's current one. Throws internal.
  virtual void select(int index) const = 0;
  // Throws usage where the driver's library cannot be asked.
  virtual std::unique_ptr<GpuWatch> watch(const std::vector<std::string>& pcis) const = 0;
  // Zeroes memory of the current one; blocks.
  virtual void clear(void* data, std::size_t bytes) const = 0;
};

using DriverFactory = std::unique_ptr<GpuDriver> (*)();

}  // namespace paceline
