#include "engine/device/cuda/nvml/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/shared_library.h"

namespace paceline::cuda {

namespace {

using Handle = void*;
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;

struct Rates {
  unsigned gpu, memory;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];

  bool is_at(const PciInfo& other) const {
    return domain == other.domain && bus == other.bus && device == other.device;
  }
};

constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr int kGpuSensor = 0;
constexpr int kUncorrected = 1, kVolatile = 0;
constexpr std::array kComputeModes = {"default", "exclusive thread", "prohibited",
                                      "exclusive process"};
constexpr unsigned kMostLinks = 36;
constexpr int kSwitch = 2;  // at a link's other end
// What two GPUs have in common, nearest first, as nvidia-smi names it.
struct Path {
  int level;
  const char* name;
};
constexpr Path kPaths[] = {{10, "PIX"}, {20, "PXB"}, {30, "PHB"}, {40, "NODE"}, {50, "SYS"}};

// Whether the answer came.
template <typename... Parameters, typename... Arguments>
bool ask(int (*function)(Handle, Parameters...), Handle handle, Arguments... arguments) {
  return function != nullptr && function(handle, arguments...) == kSuccess;
}

std::optional<unsigned> number(int (*function)(Handle, unsigned*), Handle handle) {
  unsigned value = 0;
  return ask(function, handle, &value) ? std::optional(value) : std::nullopt;
}

std::optional<unsigned> number(int (*function)(Handle, int, unsigned*), Handle handle, int which) {
  unsigned value = 0;
  return ask(function, handle, which, &value) ? std::optional(value) : std::nullopt;
}

std::optional<std::string> text(int (*function)(Handle, char*, unsigned), Handle handle) {
  std::array<char, 96> value{};
  if (!ask(function, handle, value.data(), static_cast<unsigned>(value.size()))) return {};
  return std::string(value.data());
}

std::optional<bool> current_mode(int (*function)(Handle, unsigned*, unsigned*), Handle handle) {
  unsigned current = 0, pending = 0;
  if (!ask(function, handle, &current, &pending)) return std::nullopt;
  return current != 0;
}

std::optional<double> thousandths(std::optional<unsigned> value) {
  return value ? std::optional(*value * 1e-3) : std::nullopt;
}

}  // namespace

// Optional ones are null where the driver is too old to have them.
struct Nvml::Functions {
  using Large = unsigned long long;

  SharedLibrary library;

  int (*init)() = library.function("nvmlInit_v2");
  int (*shutdown)() = library.function("nvmlShutdown");
  const char* (*error_string)(int) = library.function("nvmlErrorString");
  int (*driver_version)(char*, unsigned) = library.function("nvmlSystemGetDriverVersion");
  int (*by_pci)(const char*, Handle*) = library.function("nvmlDeviceGetHandleByPciBusId_v2");
  int (*name)(Handle, char*, unsigned) = library.optional("nvmlDeviceGetName");
  int (*uuid)(Handle, char*, unsigned) = library.optional("nvmlDeviceGetUUID");
  int (*rates)(Handle, Rates*) = library.optional("nvmlDeviceGetUtilizationRates");
  int (*clock)(Handle, int, unsigned*) = library.optional("nvmlDeviceGetClockInfo");
  int (*most_clock)(Handle, int, unsigned*) = library.optional("nvmlDeviceGetMaxClockInfo");
  int (*power)(Handle, unsigned*) = library.optional("nvmlDeviceGetPowerUsage");
  int (*power_limit)(Handle, unsigned*) = library.optional("nvmlDeviceGetEnforcedPowerLimit");
  int (*energy)(Handle, Large*) = library.optional("nvmlDeviceGetTotalEnergyConsumption");
  int (*temperature)(Handle, int, unsigned*) = library.optional("nvmlDeviceGetTemperature");
  int (*clock_limits)(Handle,
                      Large*) = library.optional("nvmlDeviceGetCurrentClocksEventReasons",
                                                 "nvmlDeviceGetCurrentClocksThrottleReasons");
  int (*memory)(Handle, MemoryInfo*) = library.optional("nvmlDeviceGetMemoryInfo");
  int (*ecc_mode)(Handle, unsigned*, unsigned*) = library.optional("nvmlDeviceGetEccMode");
  int (*ecc_errors)(Handle, int, int, Large*) = library.optional("nvmlDeviceGetTotalEccErrors");
  int (*mig_mode)(Handle, unsigned*, unsigned*) = library.optional("nvmlDeviceGetMigMode");
  int (*mps_processes)(Handle, unsigned*,
                       void*) = library.optional("nvmlDeviceGetMPSComputeRunningProcesses_v3",
                                                 "nvmlDeviceGetMPSComputeRunningProcesses");
  int (*compute_mode)(Handle, int*) = library.optional("nvmlDeviceGetComputeMode");
  int (*count)(unsigned*) = library.optional("nvmlDeviceGetCount_v2");
  int (*by_index)(unsigned, Handle*) = library.optional("nvmlDeviceGetHandleByIndex_v2");
  int (*pci)(Handle, PciInfo*) = library.optional("nvmlDeviceGetPciInfo_v3");
  int (*path)(Handle, Handle, int*) = library.optional("nvmlDeviceGetTopologyCommonAncestor");
  int (*link_state)(Handle, unsigned, unsigned*) = library.optional("nvmlDeviceGetNvLinkState");
  int (*link_end)(Handle, unsigned, int*) = library.optional("nvmlDeviceGetNvLinkRemoteDeviceType");
  int (*link_pci)(Handle, unsigned,
                  PciInfo*) = library.optional("nvmlDeviceGetNvLinkRemotePciInfo_v2");
  int (*pcie_generation)(Handle,
                         unsigned*) = library.optional("nvmlDeviceGetMaxPcieLinkGeneration");
  int (*pcie_width)(Handle, unsigned*) = library.optional("nvmlDeviceGetCurrPcieLinkWidth");
  int (*most_pcie_width)(Handle, unsigned*) = library.optional("nvmlDeviceGetMaxPcieLinkWidth");

  // The active NVLinks of a card: to another one, or, without one, to switches.
  int count_links(Handle from, const PciInfo* to) const {
    int links = 0;
    for (unsigned link = 0; link < kMostLinks; ++link) {
      unsigned active = 0;
      int end = 0;
      PciInfo pci{};
      if (!ask(link_state, from, link, &active) || active == 0) continue;
      const bool is_to_switch = ask(link_end, from, link, &end) && end == kSwitch;
      if (to == nullptr ? is_to_switch
                        : !is_to_switch && ask(link_pci, from, link, &pci) && pci.is_at(*to)) {
        ++links;
      }
    }
    return links;
  }
};

std::shared_ptr<const Nvml> Nvml::open() {
  return std::shared_ptr<const Nvml>(new Nvml());
}

Nvml::Nvml() {
  const SharedLibrary library({"libnvidia-ml.so.1"}, gpu_library_folders());
  if (!library) {
    throw usage_error("the NVIDIA driver's NVML was not found: " + library.problem(), "",
                      "install the driver, or start on a node that has GPUs");
  }
  auto functions = std::make_unique<Functions>(Functions{library});
  if (const int result = functions->init(); result != kSuccess) {
    throw usage_error(std::string("NVML: ") + functions->error_string(result), library.path(),
                      "check that nvidia-smi works here");
  }
  functions_ = std::move(functions);
}

Nvml::~Nvml() {
  if (functions_) functions_->shutdown();
}

std::string Nvml::driver_version() const {
  std::array<char, 96> version{};
  const int result =
      functions_->driver_version(version.data(), static_cast<unsigned>(version.size()));
  return result == kSuccess ? version.data() : "unknown";
}

NvmlGpu::NvmlGpu(std::shared_ptr<const Nvml> nvml, const std::string& pci)
    : nvml_(std::move(nvml)) {
  const int result = nvml_->functions_->by_pci(pci.c_str(), &handle_);
  if (result == kSuccess) return;
  throw usage_error(std::string("NVML: ") + nvml_->functions_->error_string(result), "GPU " + pci,
                    "check that nvidia-smi lists it");
}

std::optional<std::string> NvmlGpu::name() const {
  return text(nvml_->functions_->name, handle_);
}

std::optional<std::string> NvmlGpu::uuid() const {
  return text(nvml_->functions_->uuid, handle_);
}

std::optional<double> NvmlGpu::utilization() const {
  Rates rates{};
  if (!ask(nvml_->functions_->rates, handle_, &rates)) return std::nullopt;
  return rates.gpu / 100.0;
}

std::optional<double> NvmlGpu::memory_utilization() const {
  Rates rates{};
  if (!ask(nvml_->functions_->rates, handle_, &rates)) return std::nullopt;
  return rates.memory / 100.0;
}

std::optional<int> NvmlGpu::sm_mhz() const {
  return number(nvml_->functions_->clock, handle_, kSmClock);
}

std::optional<int> NvmlGpu::memory_mhz() const {
  return number(nvml_->functions_->clock, handle_, kMemoryClock);
}

std::optional<int> NvmlGpu::most_sm_mhz() const {
  return number(nvml_->functions_->most_clock, handle_, kSmClock);
}

std::optional<double> NvmlGpu::watts() const {
  if (mig().value_or(false)) return std::nullopt;
  return thousandths(number(nvml_->functions_->power, handle_));
}

std::optional<double> NvmlGpu::watts_limit() const {
  return thousandths(number(nvml_->functions_->power_limit, handle_));
}

std::optional<double> NvmlGpu::joules() const {
  unsigned long long millijoules = 0;
  if (mig().value_or(false) || !ask(nvml_->functions_->energy, handle_, &millijoules))
    return std::nullopt;
  return static_cast<double>(millijoules) * 1e-3;
}

std::optional<int> NvmlGpu::celsius() const {
  return number(nvml_->functions_->temperature, handle_, kGpuSensor);
}

std::optional<std::uint64_t> NvmlGpu::clock_limits() const {
  unsigned long long bits = 0;
  if (!ask(nvml_->functions_->clock_limits, handle_, &bits)) return std::nullopt;
  return bits;
}

std::optional<GpuMemory> NvmlGpu::memory() const {
  MemoryInfo info{};
  if (!ask(nvml_->functions_->memory, handle_, &info)) return std::nullopt;
  return GpuMemory{static_cast<std::int64_t>(info.total), static_cast<std::int64_t>(info.used)};
}

std::optional<bool> NvmlGpu::ecc() const {
  return current_mode(nvml_->functions_->ecc_mode, handle_);
}

std::optional<std::int64_t> NvmlGpu::uncorrected_errors() const {
  unsigned long long errors = 0;
  if (!ask(nvml_->functions_->ecc_errors, handle_, kUncorrected, kVolatile, &errors)) return {};
  return static_cast<std::int64_t>(errors);
}

std::optional<bool> NvmlGpu::mig() const {
  return current_mode(nvml_->functions_->mig_mode, handle_);
}

// Asked with room for none: where there are any, the room does not suffice.
std::optional<bool> NvmlGpu::mps() const {
  if (nvml_->functions_->mps_processes == nullptr) return std::nullopt;
  unsigned processes = 0;
  const int result = nvml_->functions_->mps_processes(handle_, &processes, nullptr);
  if (result == kInsufficientSize) return true;
  return result == kSuccess ? std::optional(processes > 0) : std::nullopt;
}

std::optional<std::string> NvmlGpu::compute_mode() const {
  int mode = 0;
  if (!ask(nvml_->functions_->compute_mode, handle_, &mode)) return std::nullopt;
  const auto index = static_cast<std::size_t>(mode);
  return index < kComputeModes.size() ? kComputeModes[index] : "mode " + std::to_string(mode);
}

std::optional<std::string> NvmlGpu::pcie() const {
  const Nvml::Functions& ask_for = *nvml_->functions_;
  const auto generation = number(ask_for.pcie_generation, handle_);
  const auto width = number(ask_for.pcie_width, handle_);
  if (!generation || !width) return std::nullopt;
  const unsigned most = number(ask_for.most_pcie_width, handle_).value_or(*width);
  return fmt::format("gen {} x{}{}", *generation, *width,
                     *width < most ? fmt::format(" of x{}", most) : "");
}

std::vector<std::string> NvmlGpu::paths() const {
  const Nvml::Functions& ask_for = *nvml_->functions_;
  PciInfo mine{};
  unsigned count = 0;
  if (ask_for.count == nullptr || ask_for.by_index == nullptr ||
      ask_for.count(&count) != kSuccess || !ask(ask_for.pci, handle_, &mine)) {
    return {};
  }
  const int to_switch = ask_for.count_links(handle_, nullptr);
  std::vector<std::string> paths;
  for (unsigned index = 0; index < count; ++index) {
    Handle other = nullptr;
    PciInfo pci{};
    if (ask_for.by_index(index, &other) != kSuccess || !ask(ask_for.pci, other, &pci) ||
        pci.is_at(mine)) {
      continue;
    }
    int links = ask_for.count_links(handle_, &pci), level = 0;
    // As far as both have links to the switch.
    links += std::min(to_switch, to_switch == 0 ? 0 : ask_for.count_links(other, nullptr));
    if (links > 0) {
      paths.push_back(fmt::format("NV{}", links));
    } else if (ask(ask_for.path, handle_, other, &level)) {
      const auto found = std::ranges::find(kPaths, level, &Path::level);
      paths.emplace_back(found == std::end(kPaths) ? fmt::format("level {}", level) : found->name);
    }
  }
  return paths;
}

}  // namespace paceline::cuda
