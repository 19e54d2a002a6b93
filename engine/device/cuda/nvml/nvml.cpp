#include "engine/device/cuda/nvml/nvml.h"

#include <array>

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

constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr int kGpuSensor = 0;
constexpr int kUncorrected = 1, kVolatile = 0;
constexpr std::array kComputeModes = {"default", "exclusive thread", "prohibited",
                                      "exclusive process"};

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

// Null where the driver is too old to have it.
struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*by_pci)(const char*, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;
  int (*rates)(Handle, Rates*) = nullptr;
  int (*clock)(Handle, int, unsigned*) = nullptr;
  int (*most_clock)(Handle, int, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
  int (*power_limit)(Handle, unsigned*) = nullptr;
  int (*energy)(Handle, unsigned long long*) = nullptr;
  int (*temperature)(Handle, int, unsigned*) = nullptr;
  int (*clock_limits)(Handle, unsigned long long*) = nullptr;
  int (*memory)(Handle, MemoryInfo*) = nullptr;
  int (*ecc_mode)(Handle, unsigned*, unsigned*) = nullptr;
  int (*ecc_errors)(Handle, int, int, unsigned long long*) = nullptr;
  int (*mig_mode)(Handle, unsigned*, unsigned*) = nullptr;
  int (*mps_processes)(Handle, unsigned*, void*) = nullptr;
  int (*compute_mode)(Handle, int*) = nullptr;
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
  auto functions = std::make_unique<Functions>();
  const auto find = [&](auto*& function, const char* name, const char* older = "") {
    if (library.has(name)) {
      library.find(name, function);
    } else if (library.has(older)) {
      library.find(older, function);
    }
  };
  library.find("nvmlInit_v2", functions->init);
  library.find("nvmlShutdown", functions->shutdown);
  library.find("nvmlErrorString", functions->error_string);
  library.find("nvmlSystemGetDriverVersion", functions->driver_version);
  library.find("nvmlDeviceGetHandleByPciBusId_v2", functions->by_pci);
  find(functions->name, "nvmlDeviceGetName");
  find(functions->uuid, "nvmlDeviceGetUUID");
  find(functions->rates, "nvmlDeviceGetUtilizationRates");
  find(functions->clock, "nvmlDeviceGetClockInfo");
  find(functions->most_clock, "nvmlDeviceGetMaxClockInfo");
  find(functions->power, "nvmlDeviceGetPowerUsage");
  find(functions->power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  find(functions->energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(functions->temperature, "nvmlDeviceGetTemperature");
  find(functions->clock_limits, "nvmlDeviceGetCurrentClocksEventReasons",
       "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(functions->memory, "nvmlDeviceGetMemoryInfo");
  find(functions->ecc_mode, "nvmlDeviceGetEccMode");
  find(functions->ecc_errors, "nvmlDeviceGetTotalEccErrors");
  find(functions->mig_mode, "nvmlDeviceGetMigMode");
  find(functions->mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3",
       "nvmlDeviceGetMPSComputeRunningProcesses");
  find(functions->compute_mode, "nvmlDeviceGetComputeMode");
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

}  // namespace paceline::cuda
