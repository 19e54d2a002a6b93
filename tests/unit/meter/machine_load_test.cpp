#include "engine/meter/machine_load.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/meter/fake_kernel.h"

namespace paceline {
namespace {

// Ten seconds of CPU 0, of which this process had `own` ticks.
class MachineLoadTest : public ::testing::Test {
 protected:
  LoadMeter meter() {
    kernel_.stat(1000, 1000);
    own_ = {3, 40};
    return LoadMeter({0}, kernel_.roots(), [this] { return own_; });
  }
  void pass(long tasks, double own, long steal = 0, long softirq = 0) {
    kernel_.stat(1000 + tasks, 1000 + (1000 - tasks - steal - softirq), steal, softirq);
    own_ = {3 + own, 47};
  }

  FakeKernel kernel_;
  OwnUse own_;
};

TEST_F(MachineLoadTest, WhatOthersHadIsWhatIsNotOurs) {
  const LoadMeter meter = this->meter();
  pass(900, 7.2);
  const LoadFacts load = meter.read();
  EXPECT_NEAR(load.seconds.value(), 10, 1e-9);
  EXPECT_NEAR(load.cpu_seconds.value(), 10, 1e-9) << "CPU 1 is not asked for";
  EXPECT_NEAR(load.other_cpu_share.value(), 0.18, 1e-9);
  EXPECT_EQ(load.involuntary_switches, 7);
  EXPECT_EQ(busy_because(load), "18 % of the time of its CPUs went to other processes");
}

TEST_F(MachineLoadTest, FivePercentOfOthersAreBusyAndFourAreNot) {
  const LoadMeter meter = this->meter();
  pass(1000, 9.6);
  EXPECT_EQ(busy_because(meter.read()), "");
  EXPECT_TRUE(shows_busy(meter.read()));
  pass(1000, 9.4);
  EXPECT_NE(busy_because(meter.read()), "");
}

TEST_F(MachineLoadTest, InterruptsAreNobodys) {
  const LoadMeter meter = this->meter();
  pass(700, 7, 0, 300);
  EXPECT_EQ(busy_because(meter.read()), "");
}

TEST_F(MachineLoadTest, StolenTimeIsBusy) {
  const LoadMeter meter = this->meter();
  pass(900, 9, 30);
  EXPECT_EQ(busy_because(meter.read()), "the hypervisor took 3 % of the time of its CPUs");
  pass(900, 9, 10);
  EXPECT_EQ(busy_because(meter.read()), "");
}

TEST_F(MachineLoadTest, AFewTicksReportNothing) {
  const LoadMeter meter = this->meter();
  kernel_.stat(1010, 1000);  // a tenth of a second, two ticks of it not ours
  own_.cpu_seconds += 0.08;
  EXPECT_NEAR(meter.read().other_cpu_share.value(), 0.2, 1e-9);
  EXPECT_EQ(busy_because(meter.read()), "");
}

TEST_F(MachineLoadTest, AKernelThatDoesNotReportIsNotCalledQuiet) {
  const LoadMeter meter({0}, kernel_.roots(), [] { return OwnUse{}; });
  const LoadFacts load = meter.read();
  EXPECT_FALSE(shows_busy(load));
  EXPECT_FALSE(load.load_average || load.cpu_pressure_share || load.steal_share || load.least_mhz);
  EXPECT_EQ(busy_because(load), "");
}

TEST_F(MachineLoadTest, LimitsOfControlGroupsPressureAndHeat) {
  kernel_.write("proc/self/cgroup", "0::/job/step\n");
  kernel_.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nthrottled_usec 1000000\n");
  kernel_.write("proc/pressure/cpu", "some avg10=9 avg60=9 avg300=9 total=2000000\nfull total=9\n");
  kernel_.write("proc/loadavg", "2.50 1.00 0.50 4/300 77\n");
  const std::string cpu = "sys/devices/system/cpu/cpu0/";
  kernel_.write(cpu + "thermal_throttle/core_throttle_count", "5\n");
  kernel_.write(cpu + "cpufreq/scaling_cur_freq", "2600000\n");
  const LoadMeter meter = this->meter();
  pass(900, 9);
  kernel_.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nthrottled_usec 1500000\n");
  kernel_.write("proc/pressure/cpu", "some avg10=9 avg60=9 avg300=9 total=3000000\n");
  LoadFacts load = meter.read();
  EXPECT_NEAR(load.cpu_limited_share.value(), 0.05, 1e-9);
  EXPECT_NEAR(load.cpu_pressure_share.value(), 0.1, 1e-9);
  EXPECT_EQ(load.load_average, 2.5);
  EXPECT_EQ(load.runnable_tasks_before, 3) << "this one aside";
  EXPECT_EQ(load.least_mhz, 2600);
  EXPECT_EQ(busy_because(load),
            "a CPU limit of its control group held it back for 5 % of the time");
  kernel_.write("sys/fs/cgroup/job/cpu.stat", "throttled_usec 1000000\n");
  EXPECT_EQ(busy_because(meter.read()), "");
  kernel_.write(cpu + "thermal_throttle/core_throttle_count", "7\n");
  EXPECT_EQ(busy_because(meter.read()), "heat slowed its CPUs down 2 times");
}

TEST_F(MachineLoadTest, ControlGroupsOfVersion1) {
  kernel_.write("proc/self/cgroup", "3:cpu,cpuacct:/job\n2:cpuset:/\n");
  kernel_.write("sys/fs/cgroup/cpu/job/cpu.stat", "nr_throttled 1\nthrottled_time 0\n");
  const LoadMeter meter = this->meter();
  pass(900, 9);
  kernel_.write("sys/fs/cgroup/cpu/job/cpu.stat", "nr_throttled 1\nthrottled_time 1000000000\n");
  EXPECT_NEAR(meter.read().cpu_limited_share.value(), 0.1, 1e-9);
}

TEST(MachineLoadHere, IsReportedOfThisMachine) {
  const LoadMeter meter({0, 1});
  double sum = 0;
  const double start = own_use().cpu_seconds;
  while (own_use().cpu_seconds - start < 0.2) sum += std::sqrt(sum + 1);
  const LoadFacts load = meter.read();
  EXPECT_GT(sum, 0);
  ASSERT_TRUE(load.other_cpu_share);
  EXPECT_GE(*load.other_cpu_share, 0);
  EXPECT_GT(load.cpu_seconds.value(), 0.15);
}

TEST(OwnUse, KnowsTheLargestMemoryOfThisProcess) {
  const std::int64_t before = own_use().peak_memory;
  EXPECT_GT(before, 0);
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const std::vector<char> touched(kBytes, 1);
  EXPECT_GE(own_use().peak_memory, static_cast<std::int64_t>(kBytes)) << touched.back();
}

}  // namespace
}  // namespace paceline
