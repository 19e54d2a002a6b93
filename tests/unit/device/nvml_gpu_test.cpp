// NVML itself, where there is a driver: prints what this machine's cards answer.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "engine/core/clock.h"
#include "engine/device/cuda/nvml/utilization.h"
#include "tests/support/no_card.h"

namespace paceline::cuda {
namespace {

template <typename T>
std::string text(const std::optional<T>& value) {
  return value ? std::to_string(*value) : "not known";
}

TEST(NvmlOnCard, AnswersForTheCardThatCudaSees) {
  if (const std::string why = no_card(); !why.empty()) GTEST_SKIP() << why;
  std::array<char, 64> pci{};
  ASSERT_EQ(cudaDeviceGetPCIBusId(pci.data(), pci.size(), 0), cudaSuccess);
  UtilizationSampler sampler(Nvml::open(), {pci.data()});
  std::this_thread::sleep_for(std::chrono::milliseconds(550));
  const GpuFacts all = sampler.stop().front();
  EXPECT_GE(all.samples, 3);
  EXPECT_NE(all.name, "unknown");
  EXPECT_TRUE(all.memory_bytes_total);
  std::printf("%s %s, driver %s, %s samples\n", all.pci.c_str(), all.name.c_str(),
              all.driver.c_str(), text(all.samples).c_str());
  std::printf("utilization %s, memory %s, SM %s of %s MHz, memory %s MHz\n",
              text(all.utilization).c_str(), text(all.memory_utilization).c_str(),
              text(all.sm_mhz).c_str(), text(all.most_sm_mhz).c_str(),
              text(all.memory_mhz).c_str());
  std::printf("%s of %s W, %s J, %s C, throttled %s, capped %s\n", text(all.watts).c_str(),
              text(all.watts_limit).c_str(), text(all.joules).c_str(), text(all.celsius).c_str(),
              text(all.throttled).c_str(), text(all.power_capped_share).c_str());
  std::printf("PCIe %s, other GPUs: %s\n", all.pcie.c_str(), all.links.c_str());
  std::printf("ECC %s (%s errors), MIG %s, MPS %s, compute mode %s\n", text(all.ecc).c_str(),
              text(all.uncorrected_errors).c_str(), text(all.mig).c_str(), text(all.mps).c_str(),
              all.compute_mode.c_str());
}

}  // namespace
}  // namespace paceline::cuda
