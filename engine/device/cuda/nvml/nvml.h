// What the driver says of a GPU: NVML (libnvidia-ml.so.1), opened when asked for. The toolkit has
// no header of it everywhere, so the few prototypes are ours.
//
// Any question may be answered "not supported", by a card, a driver or a virtual machine: that is
// an empty optional, never zero.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace paceline::cuda {

// Open for as long as somebody holds it. From any thread.
class Nvml {
 public:
  // Throws usage where there is no driver, with what the loader or NVML says.
  static std::shared_ptr<const Nvml> open();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver_version() const;  // "580.95.05"

 private:
  friend class NvmlGpu;
  struct Functions;
  Nvml();

  std::unique_ptr<const Functions> functions_;
};

// Bits of clock_limits().
enum class ClockLimit : std::uint64_t {
  idle = 0x1,
  application_clocks = 0x2,
  power_cap = 0x4,
  hardware_slowdown = 0x8,
  sync_boost = 0x10,
  software_thermal = 0x20,
  hardware_thermal = 0x40,
  power_brake = 0x80,
  display_clocks = 0x100
};

struct GpuMemory {
  std::int64_t total = 0, used = 0;  // bytes, of all processes
};

class NvmlGpu {
 public:
  // `pci` as CUDA gives it: indices of NVML are others than CUDA's. Throws usage where NVML does
  // not know it.
  NvmlGpu(std::shared_ptr<const Nvml> nvml, const std::string& pci);

  std::optional<std::string> name() const, uuid() const;
  // The share of NVML's last window (1/6 to 1 s) in which any kernel ran, or in which memory was
  // read or written; 0 to 1.
  std::optional<double> utilization() const, memory_utilization() const;
  std::optional<int> sm_mhz() const, memory_mhz() const, most_sm_mhz() const;
  std::optional<double> watts() const, watts_limit() const;
  std::optional<double> joules() const;  // since the driver was loaded
  std::optional<int> celsius() const;
  std::optional<std::uint64_t> clock_limits() const;  // what holds the clocks down now
  std::optional<GpuMemory> memory() const;
  std::optional<bool> ecc() const;
  std::optional<std::int64_t> uncorrected_errors() const;  // since the driver was loaded
  std::optional<bool> mig() const;                         // cut into instances
  std::optional<bool> mps() const;                         // processes share it through MPS
  std::optional<std::string> compute_mode() const;         // "default", "exclusive process"
  std::optional<std::vector<int>> near_cpus() const;

 private:
  std::shared_ptr<const Nvml> nvml_;
  void* handle_ = nullptr;
};

}  // namespace paceline::cuda
