// The device `emulated`: the device `cuda` on a host that plays a GPU a replica.
// PACELINE_EMULATED_GPUS: how many of them a process sees. PACELINE_EMULATED_WATTS: what each
// takes. PACELINE_EMULATED_PCI: where they are, a blank between two. PACELINE_EMULATED_MPI: MPI
// says that it takes their memory. PACELINE_EMULATED_USED: others use them.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/core/clock.h"
#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/gpu_driver.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline {

namespace {

class EmulatedWatch : public GpuWatch {
 public:
  explicit EmulatedWatch(const std::vector<std::string>& pcis) : all_(pcis.size()) {
    for (std::size_t i = 0; i < pcis.size(); ++i) {
      all_[i].name = "Emulated GPU";
      all_[i].pci = pcis[i];
      all_[i].pcie = "gen 5 x8 of x16";
      all_[i].links = "3 by NV18";
      if (std::getenv("PACELINE_EMULATED_USED") == nullptr) continue;
      all_[i].memory_bytes = 30'000'000'000;
      all_[i].utilization = 0.98;
      all_[i].clock_limits = {"power cap"};
    }
  }
  std::vector<GpuFacts> stop() override { return all_; }

 private:
  std::vector<GpuFacts> all_;
};

class EmulatedDriver : public GpuDriver {
 public:
  std::vector<VisibleGpu> visible(std::string& why) const override {
    const char* given = std::getenv("PACELINE_EMULATED_GPUS");
    const int count = given ? std::atoi(given) : 4;
    if (count == 0) why = "nobody plays one";
    std::vector<VisibleGpu> gpus;
    const char* places = std::getenv("PACELINE_EMULATED_PCI");
    std::istringstream words(places ? places : "");
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      std::string pci = "0000:0" + number + ":00.0";
      if (places) words >> pci;
      gpus.push_back({i, "Emulated GPU", pci, "GPU-" + number, 9, 0, std::size_t{1} << 40});
    }
    return gpus;
  }
  Support runs_on(const VisibleGpu&) const override { return Support::yes(); }
  void select(int) const override {}
  std::unique_ptr<GpuWatch> watch(const std::vector<std::string>& pcis) const override {
    return std::make_unique<EmulatedWatch>(pcis);
  }
  std::function<GpuPower()> power_reader(const std::string&) const override {
    const char* given = std::getenv("PACELINE_EMULATED_WATTS");
    if (!given) return {};
    return [watts = std::atof(given)] { return GpuPower{watts * now_seconds(), watts}; };
  }
  void clear(void* data, std::size_t bytes) const override { std::memset(data, 0, bytes); }
};

}  // namespace

std::unique_ptr<Device> make_emulated_device(const DeviceOptions& options) {
  auto runtime = cuda::make_host_runtime();
  auto products = cuda::make_host_products(*runtime);
  return make_device_on(std::move(runtime), std::move(products), cuda::cuda_options(options));
}
std::unique_ptr<GpuDriver> make_emulated_driver() {
  return std::make_unique<EmulatedDriver>();
}

}  // namespace paceline

// In place of the MPI library's. Memory of these GPUs is the host's, so that any MPI can sum in it.
extern "C" int MPIX_Query_cuda_support();
extern "C" __attribute__((visibility("default"))) int MPIX_Query_cuda_support() {
  return std::getenv("PACELINE_EMULATED_MPI") != nullptr ? 1 : 0;
}
