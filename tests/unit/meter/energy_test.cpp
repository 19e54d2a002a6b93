// Energy counters of machines that this one is not, by their documented files.
#include "engine/meter/energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
    for (const EnergyCounter& counter : energy_sources(kernel_.roots()).counters) {
      texts.push_back(counter.meter + ": " + counter.covers);
    }
    return texts;
  }
  EnergyMeter meter() {
    return EnergyMeter(energy_sources(kernel_.roots()).counters, [this] { return now_; });
  }

  testing::FakeKernel kernel_;
  double now_ = 100;
};

TEST_F(Energy, RaplHasPackagesTheirMemoryAndThePlatformOnce) {
  zone(kZone, "package-0", "1");
  zone(std::string(kZone) + ":0", "core", "1");
  zone(std::string(kZone) + ":1", "dram", "1");
  zone("sys/class/powercap/intel-rapl:1", "package-1", "1");
  zone("sys/class/powercap/intel-rapl:2", "psys", "1");
  zone("sys/class/powercap/intel-rapl-mmio:0", "package-0", "1");
  EXPECT_EQ(covered(),
            (std::vector<std::string>{"RAPL: CPU package 0", "RAPL: memory of CPU package 0",
                                      "RAPL: CPU package 1", "RAPL: platform"}));
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
  const EnergyReading reading = meter.readings().at(0);
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
  EXPECT_EQ(covered(),
            (std::vector<std::string>{"Cray pm_counters: node", "Cray pm_counters: CPUs",
                                      "Cray pm_counters: memory", "Cray pm_counters: GPU 0"}));
  EnergyMeter meter = this->meter();
  kernel_.write(folder + "energy", "127456 J 1700000010000000 us\n");
  now_ += 10;
  meter.update();
  EXPECT_EQ(meter.readings().at(0).joules, 4000);
  EXPECT_EQ(meter.readings().at(0).trouble, "");
  EXPECT_EQ(meter.readings().at(1).trouble, "it stood still");
}

TEST_F(Energy, GracesPowerIsIntegrated) {
  const std::string chip = "sys/class/hwmon/hwmon1/";
  kernel_.write(chip + "name", "power_meter\n");
  kernel_.write(chip + "device/power1_oem_info", "Module Power Socket 0\n");
  kernel_.write(chip + "device/power1_average_interval", "50\n");
  kernel_.write(chip + "device/power1_average", "200000000\n");
  kernel_.write("sys/class/hwmon/hwmon2/name", "nvme\n");  // a chip without power
  EXPECT_EQ(covered(), std::vector<std::string>{"hwmon: Module Power Socket 0"});
  EnergyMeter meter = this->meter();
  for (int i = 0; i < 100; ++i) {
    kernel_.write(chip + "device/power1_average", i % 2 == 0 ? "400000000" : "200000000");
    now_ += 0.1;
    meter.update();
  }
  EXPECT_NEAR(meter.readings().at(0).joules, 3000, 1e-6);
}

TEST_F(Energy, WhatTellsNothingSaysWhy) {
  EXPECT_TRUE(covered().empty());
  const std::string folder = "sys/cray/pm_counters/";
  kernel_.write(folder + "energy", "5 J 1 us\n");
  EnergyMeter meter = this->meter();
  kernel_.write(folder + "energy", "90 J 2 us\n");
  now_ += 2;
  meter.update();
  EXPECT_EQ(meter.readings().at(0).trouble, "2 s are fewer than 100 of its updates");
  kernel_.write(folder + "energy", "7 J 3 us\n");  // as after a reboot of the controller
  now_ += 20;
  meter.update();
  EXPECT_EQ(meter.readings().at(0).trouble, "it could not be read all the time");
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
  const EnergySources found = energy_sources(kernel_.roots());
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_TRUE(found.counters.empty());
  ASSERT_EQ(found.troubles.size(), 1U);
  EXPECT_NE(found.troubles[0].what.find("only root may read it"), std::string::npos);
  EXPECT_NE(found.troubles[0].cure.find("powercap"), std::string::npos);
}

}  // namespace
}  // namespace paceline
