// NVML over tests/support/fake_nvml.
#include "engine/device/cuda/nvml/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <thread>

#include "engine/device/cuda/nvml/utilization.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline::cuda {
namespace {

constexpr char kPci[] = "0000:1b:00.0";

class NvmlTest : public testing::Test {
 protected:
  NvmlTest() { set("PACELINE_CUDA_LIBS", FAKE_NVML); }
  ~NvmlTest() override {
    for (const char* name :
         {"PACELINE_CUDA_LIBS", "FAKE_NVML_INIT", "FAKE_NVML_LIMITS", "FAKE_NVML_UNSUPPORTED",
          "FAKE_NVML_CALLS", "FAKE_NVML_MIG", "FAKE_NVML_PAIR", "FAKE_NVML_LANES"}) {
      unsetenv(name);
    }
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(NvmlTest, ACardReportsWhatItIs) {
  const auto nvml = Nvml::open();
  EXPECT_EQ(nvml->driver_version(), "580.95.05");
  const NvmlGpu gpu(nvml, kPci);
  EXPECT_EQ(gpu.name(), "NVIDIA H200");
  EXPECT_EQ(gpu.uuid(), "GPU-5c8b");
  EXPECT_EQ(gpu.sm_mhz(), 1830);
  EXPECT_EQ(gpu.memory_mhz(), 3201);
  EXPECT_EQ(gpu.most_sm_mhz(), 1980);
  EXPECT_EQ(gpu.watts(), 350.0);
  EXPECT_EQ(gpu.watts_limit(), 700.0);
  EXPECT_EQ(gpu.celsius(), 61);
  EXPECT_EQ(gpu.memory()->total, 141000000000);
  EXPECT_EQ(gpu.memory()->used, 41000000000);
  EXPECT_EQ(gpu.ecc(), true);
  EXPECT_EQ(gpu.mig(), false);
  EXPECT_EQ(gpu.mps(), true);
  EXPECT_EQ(gpu.compute_mode(), "exclusive process");
}

TEST_F(NvmlTest, WhatIsNotSupportedIsNotKnown) {
  set("FAKE_NVML_UNSUPPORTED", "1");
  const auto nvml = Nvml::open();
  const NvmlGpu gpu(nvml, kPci);
  EXPECT_FALSE(gpu.name());
  EXPECT_FALSE(gpu.utilization());
  EXPECT_FALSE(gpu.joules());
  EXPECT_FALSE(gpu.clock_limits());
  EXPECT_FALSE(gpu.memory());
  EXPECT_FALSE(gpu.mps());
  const GpuFacts all = UtilizationSampler(nvml, {kPci}).stop().front();
  EXPECT_EQ(all.name, "unknown");
  EXPECT_GE(all.samples, 1);
  EXPECT_FALSE(all.utilization);
  EXPECT_FALSE(all.throttled);
  EXPECT_FALSE(all.joules);
}

TEST_F(NvmlTest, LinksAreNamedAsNvidiaSmiNamesThem) {
  const auto of_card = [] { return UtilizationSampler(Nvml::open(), {kPci}).stop().front(); };
  EXPECT_EQ(of_card().links, "2 by NV18");
  EXPECT_EQ(of_card().pcie, "gen 5 x16");
  set("FAKE_NVML_PAIR", "1");
  set("FAKE_NVML_LANES", "1");
  EXPECT_EQ(of_card().links, "1 by NV12, 1 by SYS");
  EXPECT_EQ(of_card().pcie, "gen 5 x8 of x16");
  set("FAKE_NVML_UNSUPPORTED", "1");
  EXPECT_EQ(of_card().links + of_card().pcie, "");
}

// What such a card draws is not this process's part of it.
TEST_F(NvmlTest, ACardThatIsSharedByMigReportsNoEnergy) {
  set("FAKE_NVML_MIG", "1");
  const auto nvml = Nvml::open();
  const NvmlGpu gpu(nvml, kPci);
  EXPECT_EQ(gpu.mig(), true);
  EXPECT_FALSE(gpu.joules());
  EXPECT_FALSE(gpu.watts());
  EXPECT_EQ(gpu.watts_limit(), 700.0);
  const GpuFacts all = UtilizationSampler(nvml, {kPci}).stop().front();
  EXPECT_FALSE(all.joules);
  EXPECT_FALSE(all.watts);
}

TEST_F(NvmlTest, WhatCannotBeAskedIsReportedWithTheCure) {
  expect_error(ErrorKind::usage, {"Not Found", "GPU 0000:99:00.0", "nvidia-smi"},
               [] { NvmlGpu(Nvml::open(), "0000:99:00.0"); });
  set("FAKE_NVML_INIT", "9");
  expect_error(ErrorKind::usage, {"Driver Not Loaded", "nvidia-smi"}, [] { Nvml::open(); });
}

TEST_F(NvmlTest, ARunIsSampledByOneThreadThatIsNotOurs) {
  const Scratch scratch;
  const std::string calls = (scratch.path() / "calls").string();
  set("FAKE_NVML_CALLS", calls.c_str());
  UtilizationSampler sampler(Nvml::open(), {kPci}, 0.005);
  const auto count = [&] {
    std::ifstream file(calls);
    std::set<int> threads;
    int lines = 0;
    for (int thread = 0; file >> thread; ++lines) threads.insert(thread);
    EXPECT_LE(threads.size(), 1U);
    EXPECT_EQ(threads.count(gettid()), 0U);
    return lines;
  };
  while (count() < 6) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const GpuFacts all = sampler.stop().front();
  EXPECT_EQ(all.pci, kPci);
  EXPECT_EQ(all.driver, "580.95.05");
  EXPECT_GE(all.samples, 2);
  EXPECT_GT(all.seconds, 0);
  EXPECT_GE(*all.utilization, 0.8);
  EXPECT_LE(*all.utilization, 0.9);
  EXPECT_NEAR(*all.memory_utilization, 0.4, 1e-9);
  EXPECT_NEAR(*all.watts, 350.0, 1e-9);
  EXPECT_DOUBLE_EQ(*all.joules, 42.0);   // a counter asked twice
  EXPECT_EQ(all.uncorrected_errors, 1);  // the same
  EXPECT_EQ(all.memory_bytes, 41000000000);
  EXPECT_EQ(all.throttled, false);
  EXPECT_TRUE(all.clock_limits.empty());
}

TEST_F(NvmlTest, ACardThatSlowsDownMarksTheRun) {
  set("FAKE_NVML_LIMITS", "0x44");
  const GpuFacts hot = UtilizationSampler(Nvml::open(), {kPci}).stop().front();
  EXPECT_EQ(hot.throttled, true);
  EXPECT_EQ(hot.clock_limits, (std::vector<std::string>{"power cap", "hardware thermal"}));
  EXPECT_EQ(hot.power_capped_share, 1.0);
}

TEST(Summary, APowerCapAndIdlenessAreNoThrottling) {
  GpuSample idle, capped;
  idle.clock_limits = static_cast<std::uint64_t>(ClockLimit::idle);
  capped.clock_limits = static_cast<std::uint64_t>(ClockLimit::power_cap);
  const GpuFacts all = summarise({idle, capped, idle, idle});
  EXPECT_EQ(all.throttled, false);
  EXPECT_EQ(all.power_capped_share, 0.25);
  EXPECT_EQ(all.clock_limits, std::vector<std::string>{"power cap"});
}

TEST(Summary, MeansAreOverTheSamplesThatKnow) {
  GpuSample one, two, none;
  one.utilization = 0.5;
  two.utilization = 1.0;
  one.sm_mhz = 1000;
  two.sm_mhz = 1500;
  two.celsius = 70;
  one.celsius = 80;
  const GpuFacts all = summarise({one, none, two});
  EXPECT_EQ(all.samples, 3);
  EXPECT_EQ(all.utilization, 0.75);
  EXPECT_EQ(all.sm_mhz, 1250);
  EXPECT_EQ(all.least_sm_mhz, 1000);
  EXPECT_EQ(all.celsius, 80);
  EXPECT_FALSE(all.watts);
  EXPECT_EQ(summarise({}).samples, 0);
}

}  // namespace
}  // namespace paceline::cuda
