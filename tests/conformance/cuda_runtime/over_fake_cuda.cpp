// What the tests of conformance.cuda take for an emulated GPU is here CUDA's own runtime, imitated.
#include <gtest/gtest.h>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/device.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/host_cuda/host_runtime.h"
#include "workloads/workload.h"

namespace paceline {

std::unique_ptr<Device> make_reference_device(const DeviceOptions& options);

const std::vector<Factory<DeviceFactory>>& device_table() {
  static const std::vector<Factory<DeviceFactory>> table = {{"reference", make_reference_device}};
  return table;
}
const std::vector<Factory<DriverFactory>>& driver_table() {
  static const std::vector<Factory<DriverFactory>> table;
  return table;
}

// Their networks are those of the cases that remain.
const std::vector<Factory<WorkloadFactory>>& workload_table() {
  static const std::vector<Factory<WorkloadFactory>> table;
  return table;
}

namespace cuda {

// Each on a card of its own, by which its calls are distinguished.
std::unique_ptr<Runtime> make_host_runtime(HostCounts* counts) {
  constexpr std::size_t kCards = 16;
  static std::vector<HostCounts*> parse_counts(kCards);
  static std::size_t made = 0;
  if (made == 0) {
    fake_cuda::reset({std::vector<fake_cuda::Card>(kCards)});
    fake_cuda::observe([](const std::string& call, int device) {
      HostCounts* of = parse_counts[static_cast<std::size_t>(device)];
      if (of == nullptr) return;
      if (call == "cudaMalloc" || call == "cudaHostAlloc") ++of->allocations;
      if (call == "kernel") ++of->kernels;
      if (call == "cudaStreamWaitEvent") ++of->waits;
      if (call == "cudaStreamEndCapture") ++of->captures;
      if (call == "cudaGraphLaunch") ++of->graph_launches;
    });
  }
  const std::size_t card = made++ % kCards;
  parse_counts[card] = counts;
  std::string why;
  return make_cuda_runtime(make_gpu_driver()->visible(why).at(card));
}

}  // namespace cuda

namespace {

class Afterwards : public testing::Environment {
  void TearDown() override {
    EXPECT_EQ(fake_cuda::complaints(), std::vector<std::string>{});
    EXPECT_EQ(fake_cuda::living(), fake_cuda::Living{}) << "something was not given back";
  }
};

const auto* const afterwards = testing::AddGlobalTestEnvironment(new Afterwards);

}  // namespace

}  // namespace paceline
