// Samples GPUs while something runs: utilization, clocks, temperature. One thread queries NVML ten
// times per second, off the hot path.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/cuda/nvml/nvml.h"
#include "engine/device/gpu_driver.h"

namespace paceline::cuda {

// Empty values are unknown. See NvmlGpu for the meanings.
struct GpuSample {
  std::optional<double> utilization, memory_utilization, watts;
  std::optional<int> sm_mhz, memory_mhz, celsius;
  std::optional<std::uint64_t> clock_limits;
  std::optional<std::int64_t> memory_bytes;  // in use
};

// The part of the summary that samples provide.
GpuFacts summarise(const std::vector<GpuSample>& samples);

class UtilizationSampler final : public GpuWatch {
 public:
  static constexpr double kInterval = 0.1;  // seconds

  // Starts sampling. Throws usage for a GPU that NVML does not know.
  UtilizationSampler(std::shared_ptr<const Nvml> nvml, const std::vector<std::string>& pcis,
                     double interval = kInterval);

  // Stops sampling. Results are in the order of `pcis`. Call once.
  std::vector<GpuFacts> stop() override;

 private:
  struct Watched {
    std::string pci;
    NvmlGpu gpu;
    std::optional<double> joules_before = {};
    std::optional<std::int64_t> errors_before = {};
    std::vector<GpuSample> samples = {};
  };

  void sample_until(const std::stop_token& stop) noexcept;
  GpuFacts describe(const Watched& watched, double seconds) const;

  std::shared_ptr<const Nvml> nvml_;
  std::vector<Watched> watched_;  // the thread owns the samples until it ends
  double interval_, start_;
  std::jthread thread_;  // last: it ends first
};

}  // namespace paceline::cuda
