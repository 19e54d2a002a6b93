// Queries the driver about a GPU through NVML (libnvidia-ml.so.1), opened on demand. Declares the
// few prototypes itself, because not every toolkit has the header.
//
// A card, driver or virtual machine may answer any query with "not supported". The result is then
// an empty optional, never zero.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace paceline::cuda {

// Stays open while references exist. Thread-safe.
class Nvml {
 public:
  // Throws usage with the message of the loader or of NVML if there is no driver.
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
  std::int64_t total = 0, used = 0;  // bytes, over all processes
};

class NvmlGpu {
 public:
  // `pci` in CUDA's form; NVML's indices differ from CUDA's. Throws usage if NVML does not know it.
  NvmlGpu(std::shared_ptr<const Nvml> nvml, const std::string& pci);

  std::optional<std::string> name() const, uuid() const;
  // The share of NVML's last window (1/6 to 1 s) in which a kernel ran, or in which memory was
  // accessed; 0 to 1.
  std::optional<double> utilization() const, memory_utilization() const;
  std::optional<int> sm_mhz() const, memory_mhz() const, most_sm_mhz() const;
  // The whole card's, so that of a card in MIG mode, which others share, the first and the last are
  // empty. Joules are since the driver was loaded.
  std::optional<double> watts() const, watts_limit() const, joules() const;
  std::optional<int> celsius() const;
  std::optional<std::uint64_t> clock_limits() const;  // current limits of the clocks
  std::optional<GpuMemory> memory() const;
  std::optional<bool> ecc() const;
  std::optional<std::int64_t> uncorrected_errors() const;  // since the driver was loaded
  std::optional<bool> mig() const;                         // MIG is enabled
  std::optional<bool> mps() const;                         // processes share it through MPS
  std::optional<std::string> compute_mode() const;         // "default", "exclusive process"
  // "gen 5 x16": what card and slot can, and the lanes in use; "gen 5 x8 of x16" lost some.
  std::optional<std::string> pcie() const;
  // To each other GPU that the driver shows, as `nvidia-smi topo -m` names it: "NV18" (NVLinks,
  // to it or by a switch), "PIX", "PXB", "PHB", "NODE", "SYS".
  std::vector<std::string> paths() const;

 private:
  std::shared_ptr<const Nvml> nvml_;
  void* handle_ = nullptr;
};

}  // namespace paceline::cuda
