// Energy counters of machines that this one is not, by their documented files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>

#include "engine/meter/energy_meter.h"
#include "tests/support/expect_error.h"
#include "tests/unit/meter/fake_kernel.h"

namespace paceline {
namespace {

constexpr char kZone[] = "sys/class/powercap/intel-rapl:0";

class Energy : public ::testing::Test {
 protected:
  void zone(const std::string& folder, const std::string& name, const std::string& microjoules,
            const std::string& range = "1000000000") const {
    kernel_.write(folder + "/name", name + "\n");
    kernel_.write(folder + "/energy_uj", microjoules + "\n");
    kernel_.write(folder + "/max_energy_range_uj", range + "\n");
  }
  std::vector<std::string> covered() const {
    std::vector<std::string> texts;
    for (const EnergyCounter& counter : sources().counters) {
      texts.push_back(counter.meter + ": " + counter.place + " (" + to_string(counter.covered) +
                      ")");
    }
    return texts;
  }
  EnergySources sources() const { return energy_sources(kernel_.roots(), perf_); }
  EnergyMeter meter(std::size_t parts = 1) {
    return EnergyMeter(sources().counters, parts, [this] { return now_; });
  }
  // Packages 0 and 1, by their CPUs 0 and 8.
  void power_pmu() const {
    const std::string folder = "sys/bus/event_source/devices/power/";
    kernel_.write(folder + "type", "23\n");
    kernel_.write(folder + "cpumask", "0,8\n");
    kernel_.write(folder + "events/energy-pkg", "event=0x02\n");
    kernel_.write(folder + "events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
  }

  FakeKernel kernel_;
  PerfOpener perf_ = [](int, unsigned long, int) {
    return std::function<std::optional<double>()>();
  };
  double now_ = 100;
};

TEST_F(Energy, RaplHasPackagesTheirMemoryAndThePlatformOnce) {
  zone(kZone, "package-0", "1");
  zone(std::string(kZone) + ":0", "core", "1");
  zone(std::string(kZone) + ":1", "dram", "1");
  zone("sys/class/powercap/intel-rapl:1", "package-1", "1");
  zone("sys/class/powercap/intel-rapl:2", "psys", "1");
  zone("sys/class/powercap/intel-rapl-mmio:0", "package-0", "1");
  EXPECT_EQ(covered(), (std::vector<std::string>{
                           "RAPL: CPU package 0 (CPUs)", "RAPL: memory of CPU package 0 (memory)",
                           "RAPL: CPU package 1 (CPUs)", "RAPL: platform (platform)"}));
}

TEST_F(Energy, CountsToTheLastJouleOverWraps) {
  zone(kZone, "package-0", "900000000");  // of 1000 J
  EnergyMeter meter = this->meter();
  double expected = 0, counter = 900;
  for (int i = 0; i < 50; ++i) {
    const double step = 37.25 + i;
    counter += step;
    expected += step;
    if (counter >= 1000) counter -= 1000;
    kernel_.write(std::string(kZone) + "/energy_uj",
                  std::to_string(static_cast<long long>(counter * 1e6)) + "\n");
    now_ += 10;
    meter.update();
  }
  const EnergyReading reading = meter.reading(0, 0);
  EXPECT_NEAR(reading.joules, expected, 1e-6);
  EXPECT_EQ(reading.seconds, 500);
  EXPECT_EQ(reading.trouble, "");
  EXPECT_NEAR(reading.watts(), expected / 500, 1e-9);
}

TEST_F(Energy, CraysNodeAndItsParts) {
  const std::string folder = "sys/cray/pm_counters/";
  for (const char* name : {"energy", "cpu_energy", "memory_energy", "accel0_energy"}) {
    kernel_.write(folder + name, "123456 J 1700000000000000 us\n");
  }
  kernel_.write(folder + "accel0_power_cap", "0 W 1700000000000000 us\n");
  kernel_.write(folder + "power", "400 W 1700000000000000 us\n");
  EXPECT_EQ(covered(), (std::vector<std::string>{
                           "Cray pm_counters: node (node)", "Cray pm_counters: CPUs (CPUs)",
                           "Cray pm_counters: memory (memory)", "Cray pm_counters: GPU 0 (GPUs)"}));
  EnergyMeter meter = this->meter();
  kernel_.write(folder + "energy", "127456 J 1700000010000000 us\n");
  now_ += 10;
  meter.update();
  EXPECT_EQ(meter.reading(0, 0).joules, 4000);
  EXPECT_EQ(meter.reading(0, 0).trouble, "");
  EXPECT_EQ(meter.reading(1, 0).trouble, "it stood still");
}

TEST_F(Energy, GracesPowerIsIntegrated) {
  const std::string chip = "sys/class/hwmon/hwmon1/";
  kernel_.write(chip + "name", "power_meter\n");
  kernel_.write(chip + "device/power1_oem_info", "Module Power Socket 0\n");
  kernel_.write(chip + "device/power1_average_interval", "50\n");
  kernel_.write(chip + "device/power1_average", "200000000\n");
  kernel_.write("sys/class/hwmon/hwmon2/name", "nvme\n");  // a chip without power
  EXPECT_EQ(covered(), std::vector<std::string>{"hwmon: Module Power Socket 0 (modules)"});
  EnergyMeter meter = this->meter();
  for (int i = 0; i < 100; ++i) {
    kernel_.write(chip + "device/power1_average", i % 2 == 0 ? "400000000" : "200000000");
    now_ += 0.1;
    meter.update();
  }
  EXPECT_NEAR(meter.reading(0, 0).joules, 3000, 1e-6);
}

TEST_F(Energy, WhatReportsNothingReportsWhy) {
  EXPECT_TRUE(covered().empty());
  const std::string folder = "sys/cray/pm_counters/";
  kernel_.write(folder + "energy", "5 J 1 us\n");
  EnergyMeter meter = this->meter();
  kernel_.write(folder + "energy", "90 J 2 us\n");
  now_ += 2;
  meter.update();
  EXPECT_EQ(meter.reading(0, 0).trouble, "2 s are too short: it takes 10 s");
  kernel_.write(folder + "energy", "7 J 3 us\n");  // as after a reboot of the controller
  now_ += 20;
  meter.update();
  EXPECT_EQ(meter.reading(0, 0).trouble, "it could not be read all the time");
}

// 1/2^32 joules a count, as the PMU says.
TEST_F(Energy, RaplByPerfWherePowercapDoesNotReport) {
  power_pmu();
  std::vector<std::string> opened;
  double count = 0;
  perf_ = [&](int type, unsigned long event, int cpu) -> std::function<std::optional<double>()> {
    opened.push_back(std::to_string(type) + " " + std::to_string(event) + " " +
                     std::to_string(cpu));
    return [&count] { return std::optional(count); };
  };
  EXPECT_EQ(covered(), (std::vector<std::string>{"RAPL by perf: CPU package 0 (CPUs)",
                                                 "RAPL by perf: CPU package 1 (CPUs)"}));
  EXPECT_EQ(opened, (std::vector<std::string>{"23 2 0", "23 2 8"}));
  EnergyMeter meter = this->meter();
  count = 40.0 * 4294967296.0;
  now_ += 1;
  meter.update();
  EXPECT_DOUBLE_EQ(meter.reading(0, 0).joules, 40);
  zone(kZone, "package-0", "1");
  EXPECT_EQ(covered(), std::vector<std::string>{"RAPL: CPU package 0 (CPUs)"});
}

TEST_F(Energy, ARefusedPmuIsNamedToo) {
  power_pmu();
  EXPECT_TRUE(covered().empty());
  ASSERT_EQ(sources().troubles.size(), 1U);
  expect_parts(sources().troubles[0].cure, {"perf_event_paranoid"});
}

TEST_F(Energy, PartsOfARunAreCountedApart) {
  const std::string file = "sys/cray/pm_counters/energy";
  kernel_.write(file, "0 J 1 us\n");
  EnergyMeter meter = this->meter(3);
  double joules = 0;
  const auto spend = [&](std::size_t part, double seconds, double watts) {
    meter.enter(part);
    now_ += seconds;
    joules += seconds * watts;
    kernel_.write(file, std::to_string(joules) + " J 1 us\n");
  };
  for (int epoch = 0; epoch < 4; ++epoch) {
    spend(1, 10, 300);
    spend(2, 6, 200);
  }
  meter.enter(0);
  EXPECT_NEAR(meter.reading(0, 1).joules, 12000, 0.01);
  EXPECT_NEAR(meter.reading(0, 1).watts(), 300, 0.01);
  EXPECT_EQ(meter.reading(0, 1).trouble, "");
  EXPECT_NEAR(meter.reading(0, 2).joules, 4800, 0.01);
  // Entered four times, so up to eight updates are on the wrong side.
  EXPECT_EQ(meter.reading(0, 2).trouble, "");
  spend(2, 5, 200);
  for (int i = 0; i < 12; ++i) {
    spend(2, 1, 200);
    spend(0, 1, 100);
  }
  meter.enter(0);
  EXPECT_EQ(meter.reading(0, 2).trouble, "41 s in 17 parts are too short: it takes 41.2 s");
}

TEST_F(Energy, AWatchFollowsAPower) {
  const std::string chip = "sys/class/hwmon/hwmon1/device/power1_";
  kernel_.write(chip + "oem_info", "Grace Power Socket 0\n");
  kernel_.write(chip + "average_interval", "50\n");
  kernel_.write(chip + "average", "200000000\n");
  EnergyWatch watch(sources().counters, 2);
  EXPECT_DOUBLE_EQ(watch.glance_seconds(), 0.5);
  watch.enter(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const EnergyReading reading = watch.stop().reading(0, 1);
  EXPECT_GE(reading.seconds, 0.2);
  EXPECT_NEAR(reading.watts(), 200, 1e-6);
  EnergyWatch none({}, 2);
  EXPECT_EQ(none.glance_seconds(), 0);
}

// Of one core, with every source that a node may have. So no step is slowed by as much.
TEST_F(Energy, AWatchTakesLessThanHalfAPercentOfACore) {
  for (const std::string package : {"0", "1"}) {
    const std::string folder = "sys/class/powercap/intel-rapl:" + package;
    zone(folder, "package-" + package, "1");
    zone(folder + ":0", "dram", "1");
  }
  for (const char* name : {"energy", "cpu_energy", "memory_energy", "accel0_energy",
                           "accel1_energy", "accel2_energy", "accel3_energy"}) {
    kernel_.write(std::string("sys/cray/pm_counters/") + name, "123456 J 1700000000000000 us\n");
  }
  EnergyWatch watch(sources().counters, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the thread has started
  const std::clock_t began = std::clock();
  const double at = now_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double share =
      static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC / (now_seconds() - at);
  EXPECT_EQ(watch.stop().counters().size(), 11U);
  EXPECT_LT(share, 0.005);
}

TEST_F(Energy, ACounterThatOnlyRootMayReadIsNamedWithItsCure) {
  zone(kZone, "package-0", "1");
  const auto root = kernel_.roots().sys;
  std::filesystem::permissions(root / "class/powercap/intel-rapl:0/energy_uj",
                               std::filesystem::perms::none);
  const bool is_root = geteuid() == 0;
  if (is_root) {  // who could read it nevertheless
    std::filesystem::permissions(root.parent_path(), std::filesystem::perms::all);
    ASSERT_EQ(seteuid(65534), 0);
  }
  const EnergySources found = sources();
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_TRUE(found.counters.empty());
  ASSERT_EQ(found.troubles.size(), 1U);
  expect_parts(found.troubles[0].what, {"this user may not read it"});
  expect_parts(found.troubles[0].cure, {"powercap"});
}

}  // namespace
}  // namespace paceline
