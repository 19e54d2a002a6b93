// See README.md.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
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
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Card {
  unsigned bus;
  std::atomic<unsigned> questions{0};
};
Card cards[] = {{0x1b}, {0x2b}, {0x3b}};
constexpr unsigned kLinks = 18;
constexpr int kGpu = 0, kSwitch = 2;  // at a link's other end

const Card& card_of(const void* handle) {
  return *static_cast<const Card*>(handle);
}
// NVLinks of the first two cards to each other: 12; without a switch, the third has none.
bool has_switch() {
  return std::getenv("FAKE_NVML_PAIR") == nullptr;
}
bool has_link(const void* handle, unsigned link) {
  return has_switch() ? link < kLinks : card_of(handle).bus != 0x3b && link < 12;
}
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
  *handle = &cards[0];
  return kSuccess;
}
EXPORT int nvmlDeviceGetName(void*, char* to, unsigned room) {
  return say(to, room, "NVIDIA H200");
}
EXPORT int nvmlDeviceGetUUID(void*, char* to, unsigned room) {
  return say(to, room, "GPU-5c8b");
}
// 80 % at first, 90 % later.
EXPORT int nvmlDeviceGetUtilizationRates(void* handle, Rates* rates) {
  if (const char* file = std::getenv("FAKE_NVML_CALLS")) {
    std::ofstream(file, std::ios::app) << gettid() << '\n';
  }
  return answer(rates, Rates{static_cast<Card*>(handle)->questions++ == 0 ? 80U : 90U, 40});
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
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  return answer(count, 3U);
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= 3) return kNotFound;
  return answer(handle, static_cast<void*>(&cards[index]));
}
EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* to) {
  return answer(to, PciInfo{"", 0, card_of(handle).bus, 0, 0, 0, ""});
}
EXPORT int nvmlDeviceGetTopologyCommonAncestor(void*, void*, int* level) {
  return answer(level, 50);
}
EXPORT int nvmlDeviceGetNvLinkState(void* handle, unsigned link, unsigned* active) {
  if (link >= kLinks) return kNotSupported;
  return answer(active, has_link(handle, link) ? 1U : 0U);
}
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int* type) {
  return answer(type, has_switch() ? kSwitch : kGpu);
}
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* handle, unsigned, PciInfo* to) {
  return answer(to, PciInfo{"", 0, card_of(handle).bus == 0x1b ? 0x2bU : 0x1bU, 0, 0, 0, ""});
}
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  return answer(generation, 5U);
}
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* lanes) {
  return answer(lanes, std::getenv("FAKE_NVML_LANES") != nullptr ? 8U : 16U);
}
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* lanes) {
  return answer(lanes, 16U);
}

}  // extern "C"
