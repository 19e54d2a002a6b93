// See README.md.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7;
constexpr unsigned long long kGigabyte = 1000000000;

struct Rates {
  unsigned gpu, memory;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Card {
  std::atomic<unsigned> questions{0};
};
Card card;
int open_count = 0;

bool unsupported() {
  return std::getenv("FAKE_NVML_UNSUPPORTED") != nullptr;
}

template <typename T>
int answer(T* to, T value) {
  if (unsupported()) return kNotSupported;
  *to = value;
  return kSuccess;
}

int say(char* to, unsigned room, const char* text) {
  if (unsupported()) return kNotSupported;
  std::snprintf(to, room, "%s", text);
  return kSuccess;
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2() {
  const char* code = std::getenv("FAKE_NVML_INIT");
  if (code != nullptr) return std::atoi(code);
  ++open_count;
  return kSuccess;
}
EXPORT int nvmlShutdown() {
  return --open_count < 0 ? 1 : kSuccess;
}
EXPORT const char* nvmlErrorString(int code) {
  return code == kNotFound ? "Not Found" : code == 9 ? "Driver Not Loaded" : "Unknown Error";
}
EXPORT int nvmlSystemGetDriverVersion(char* to, unsigned room) {
  std::snprintf(to, room, "580.95.05");
  return kSuccess;
}
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** handle) {
  if (std::string(pci) != "0000:1b:00.0") return kNotFound;
  *handle = &card;
  return kSuccess;
}
EXPORT int nvmlDeviceGetName(void*, char* to, unsigned room) {
  return say(to, room, "NVIDIA H200");
}
EXPORT int nvmlDeviceGetUUID(void*, char* to, unsigned room) {
  return say(to, room, "GPU-5c8b");
}
// 80 % at first, 90 % later.
EXPORT int nvmlDeviceGetUtilizationRates(void*, Rates* rates) {
  if (const char* file = std::getenv("FAKE_NVML_CALLS")) {
    std::ofstream(file, std::ios::app) << gettid() << '\n';
  }
  return answer(rates, Rates{card.questions++ == 0 ? 80U : 90U, 40});
}
EXPORT int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  return answer(mhz, type == 1 ? 1830U : 3201U);
}
EXPORT int nvmlDeviceGetMaxClockInfo(void*, int type, unsigned* mhz) {
  return answer(mhz, type == 1 ? 1980U : 3201U);
}
EXPORT int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  return answer(milliwatts, 350000U);
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  return answer(milliwatts, 700000U);
}
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  static std::atomic<unsigned long long> total{5000000};
  return answer(millijoules, total += 42000);
}
EXPORT int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  return sensor == 0 ? answer(celsius, 61U) : kNotSupported;
}
// The name that drivers had before 535.
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  const char* limits = std::getenv("FAKE_NVML_LIMITS");
  return answer(bits, limits == nullptr ? 0ULL : std::strtoull(limits, nullptr, 0));
}
EXPORT int nvmlDeviceGetMemoryInfo(void*, MemoryInfo* info) {
  return answer(info, MemoryInfo{141 * kGigabyte, 100 * kGigabyte, 41 * kGigabyte});
}
EXPORT int nvmlDeviceGetEccMode(void*, unsigned* current, unsigned* pending) {
  *pending = 1;
  return answer(current, 1U);
}
EXPORT int nvmlDeviceGetTotalEccErrors(void*, int type, int counter, unsigned long long* errors) {
  static std::atomic<unsigned long long> total{7};
  return type == 1 && counter == 0 ? answer(errors, ++total) : kNotSupported;
}
EXPORT int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *pending = 0;
  return answer(current, std::getenv("FAKE_NVML_MIG") != nullptr ? 1U : 0U);
}
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void*, unsigned*, void*) {
  return unsupported() ? kNotSupported : kInsufficientSize;
}
EXPORT int nvmlDeviceGetComputeMode(void*, int* mode) {
  return answer(mode, 3);
}

}  // extern "C"
