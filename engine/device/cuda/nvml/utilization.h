// How busy, fast and warm GPUs were while something ran: one thread asks NVML ten times a second,
// off the hot path.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/cuda/nvml/nvml.h"

namespace paceline::cuda {

// What is not known is empty; see NvmlGpu for the meaning of each.
struct GpuSample {
  std::optional<double> utilization, memory_utilization, watts;
  std::optional<int> sm_mhz, memory_mhz, celsius;
  std::optional<std::uint64_t> clock_limits;
  std::optional<std::int64_t> memory_bytes;  // in use
};

// Of one GPU over one run. Means and shares are over samples.
struct GpuUtilization {
  std::string pci, name, uuid, driver;
  int samples = 0;
  double seconds = 0;
  std::optional<double> utilization, memory_utilization;  // 0 to 1, as published tables give it
  std::optional<double> sm_mhz, memory_mhz;               // means
  std::optional<int> least_sm_mhz, most_sm_mhz;           // seen; what the card could do
  std::optional<double> watts, watts_limit;               // mean; in force
  std::optional<double> joules;                           // of the card's own counter
  std::optional<int> celsius;                             // the highest
  std::optional<std::int64_t> memory_bytes, memory_bytes_total;  // the most in use by all; there
  std::optional<std::int64_t> uncorrected_errors;                // of ECC, during the run
  std::optional<bool> ecc, mig, mps;
  std::optional<std::string> compute_mode;

  // What held the clocks down in some sample, being idle aside: "power cap", "hardware thermal".
  std::vector<std::string> clock_limits;
  std::optional<double> power_capped_share;
  // Slowed by heat or by failing power in any sample: such a run is compared with none. A power cap
  // is no such thing: large cards run at theirs for as long as they compute.
  std::optional<bool> throttled;
};

// The samples' part of it.
GpuUtilization summarise(const std::vector<GpuSample>& samples);

class UtilizationSampler {
 public:
  static constexpr double kInterval = 0.1;  // seconds

  // Samples from now on. Throws usage for a GPU that NVML does not know.
  UtilizationSampler(std::shared_ptr<const Nvml> nvml, const std::vector<std::string>& pcis,
                     double interval = kInterval);
  ~UtilizationSampler();
  UtilizationSampler(const UtilizationSampler&) = delete;
  UtilizationSampler& operator=(const UtilizationSampler&) = delete;

  // Ends it; in the order of `pcis`. Once.
  std::vector<GpuUtilization> stop();

 private:
  struct Watched {
    std::string pci;
    NvmlGpu gpu;
    std::optional<double> joules_before = {};
    std::optional<std::int64_t> errors_before = {};
    std::vector<GpuSample> samples = {};
  };

  void sample_until_stopped() noexcept;
  GpuUtilization describe(const Watched& watched, double seconds) const;
  void end();

  std::shared_ptr<const Nvml> nvml_;
  std::vector<Watched> watched_;  // samples are the thread's until it has ended
  double interval_, start_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace paceline::cuda
