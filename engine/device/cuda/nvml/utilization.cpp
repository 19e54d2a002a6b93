#include "engine/device/cuda/nvml/utilization.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/text.h"

namespace paceline::cuda {

namespace {

constexpr std::uint64_t bit(ClockLimit limit) {
  return static_cast<std::uint64_t>(limit);
}

constexpr std::uint64_t kThrottled =
    bit(ClockLimit::hardware_slowdown) | bit(ClockLimit::software_thermal) |
    bit(ClockLimit::hardware_thermal) | bit(ClockLimit::power_brake);

constexpr std::array<std::pair<ClockLimit, const char*>, 8> kLimits = {
    {{ClockLimit::application_clocks, "application clocks"},
     {ClockLimit::power_cap, "power cap"},
     {ClockLimit::hardware_slowdown, "hardware slowdown"},
     {ClockLimit::sync_boost, "sync boost"},
     {ClockLimit::software_thermal, "software thermal"},
     {ClockLimit::hardware_thermal, "hardware thermal"},
     {ClockLimit::power_brake, "power brake"},
     {ClockLimit::display_clocks, "display clocks"}}};

template <typename T>
std::optional<double> mean(const std::vector<T>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const T& value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

// Or the least, by std::greater.
template <typename T, typename Before = std::less<T>>
std::optional<T> largest(const std::vector<T>& values, Before before = {}) {
  if (values.empty()) return std::nullopt;
  return *std::max_element(values.begin(), values.end(), before);
}

void summarise_limits(const std::vector<std::uint64_t>& limits, GpuFacts& all) {
  if (limits.empty()) return;
  std::uint64_t seen = 0;
  double capped = 0;
  for (const std::uint64_t bits : limits) {
    seen |= bits;
    capped += (bits & bit(ClockLimit::power_cap)) != 0 ? 1 : 0;
  }
  for (const auto& [limit, name] : kLimits) {
    if ((seen & bit(limit)) != 0) all.clock_limits.emplace_back(name);
  }
  all.power_capped_share = capped / static_cast<double>(limits.size());
  all.throttled = (seen & kThrottled) != 0;
}

GpuSample take_sample(const NvmlGpu& gpu) {
  GpuSample sample;
  sample.utilization = gpu.utilization();
  sample.memory_utilization = gpu.memory_utilization();
  sample.watts = gpu.watts();
  sample.sm_mhz = gpu.sm_mhz();
  sample.memory_mhz = gpu.memory_mhz();
  sample.celsius = gpu.celsius();
  sample.clock_limits = gpu.clock_limits();
  if (const auto memory = gpu.memory()) sample.memory_bytes = memory->used;
  return sample;
}

// The increase of a counter. Empty if it fell, because the driver was loaded anew.
template <typename T>
std::optional<T> grown(std::optional<T> before, std::optional<T> after) {
  if (!before || !after || *after < *before) return std::nullopt;
  return *after - *before;
}

}  // namespace

GpuFacts summarise(const std::vector<GpuSample>& samples) {
  GpuFacts all;
  all.samples = static_cast<std::int64_t>(samples.size());
  all.utilization = mean(known_values(samples, &GpuSample::utilization));
  all.memory_utilization = mean(known_values(samples, &GpuSample::memory_utilization));
  all.sm_mhz = mean(known_values(samples, &GpuSample::sm_mhz));
  all.memory_mhz = mean(known_values(samples, &GpuSample::memory_mhz));
  all.least_sm_mhz = largest(known_values(samples, &GpuSample::sm_mhz), std::greater<>());
  all.watts = mean(known_values(samples, &GpuSample::watts));
  all.celsius = largest(known_values(samples, &GpuSample::celsius));
  all.memory_bytes = largest(known_values(samples, &GpuSample::memory_bytes));
  summarise_limits(known_values(samples, &GpuSample::clock_limits), all);
  return all;
}

UtilizationSampler::UtilizationSampler(std::shared_ptr<const Nvml> nvml,
                                       const std::vector<std::string>& pcis, double interval)
    : nvml_(std::move(nvml)), interval_(interval), start_(now_seconds()) {
  for (const std::string& pci : pcis) {
    watched_.push_back({pci, NvmlGpu(nvml_, pci)});
    watched_.back().joules_before = watched_.back().gpu.joules();
    watched_.back().errors_before = watched_.back().gpu.uncorrected_errors();
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { sample_until(stop); });
}

void UtilizationSampler::sample_until(const std::stop_token& stop) noexcept {
  block_signals();
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any stopped;
  do {
    for (Watched& watched : watched_) {
      try {
        watched.samples.push_back(take_sample(watched.gpu));
      } catch (const std::exception&) {
        // No memory for a sample: one fewer.
      }
    }
  } while (!stopped.wait_for(lock, stop, std::chrono::duration<double>(interval_),
                             [&stop] { return stop.stop_requested(); }));
}

std::vector<GpuFacts> UtilizationSampler::stop() {
  const double seconds = now_seconds() - start_;
  thread_.request_stop();
  thread_.join();
  return mapped(watched_, [&](const Watched& watched) { return describe(watched, seconds); });
}

GpuFacts UtilizationSampler::describe(const Watched& watched, double seconds) const {
  const NvmlGpu& gpu = watched.gpu;
  GpuFacts all = summarise(watched.samples);
  all.pci = watched.pci;
  all.name = gpu.name().value_or("unknown");
  all.uuid = gpu.uuid().value_or("unknown");
  all.driver = nvml_->driver_version();
  all.seconds = seconds;
  all.most_sm_mhz = gpu.most_sm_mhz();
  all.watts_limit = gpu.watts_limit();
  all.joules = grown(watched.joules_before, gpu.joules());
  if (const auto memory = gpu.memory()) all.memory_bytes_total = memory->total;
  all.uncorrected_errors = grown(watched.errors_before, gpu.uncorrected_errors());
  all.ecc = gpu.ecc();
  all.mig = gpu.mig();
  all.mps = gpu.mps();
  all.compute_mode = gpu.compute_mode().value_or("");
  all.pcie = gpu.pcie().value_or("");
  all.links = counted_paths(gpu.paths());
  return all;
}

}  // namespace paceline::cuda
