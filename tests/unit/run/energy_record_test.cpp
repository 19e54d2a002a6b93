#include <gtest/gtest.h>

#include "run/meter_record.h"

namespace paceline {
namespace {

MeterFacts meter(const std::string& name, const std::string& covers, double joules,
                 int counters = 1) {
  MeterFacts facts;
  facts.meter = name;
  facts.covers = covers;
  facts.sampled = name == "GPU power";
  facts.counters = counters;
  facts.seconds = 10;
  facts.joules = joules;
  facts.evaluation_joules = joules / 10;
  facts.checkpoint_joules = 0;
  facts.idle_watts = 50;
  return facts;
}

LoadFacts load(double seconds, double cpu_seconds, double others) {
  LoadFacts facts;
  facts.seconds = seconds;
  facts.cpu_seconds = cpu_seconds;
  facts.other_cpu_share = others;
  facts.involuntary_switches = 5;
  facts.runnable_tasks_after = static_cast<std::int64_t>(cpu_seconds);
  facts.least_mhz = 100 * cpu_seconds;
  return facts;
}

TEST(LoadRecord, SharesAreOfAllCpusAndTheWorstAndCountsAreAdded) {
  const LoadFacts all = summarize({load(10, 10, 0.04), {}, load(10, 30, 0.08)});
  EXPECT_EQ(all.seconds, 10);
  EXPECT_EQ(all.cpu_seconds, 40);
  EXPECT_NEAR(all.other_cpu_share.value(), (0.4 + 2.4) / 40, 1e-12);
  EXPECT_EQ(all.worst_other_cpu_share, 0.08);
  EXPECT_EQ(all.involuntary_switches, 10);
  EXPECT_EQ(all.runnable_tasks_after, 30);
  EXPECT_EQ(all.least_mhz, 1000);
  EXPECT_EQ(all.thermal_throttles, std::nullopt) << "no process knows it";
  EXPECT_EQ(all.busy, true);
  EXPECT_EQ(all.why, "8 % of the time of its CPUs went to other processes");
}

TEST(LoadRecord, OneProcessThatDoesNotKnowMakesItUnknownNotQuiet) {
  LoadFacts unknown = load(10, 10, 0);
  unknown.other_cpu_share.reset();
  EXPECT_EQ(summarize({load(10, 10, 0.01), unknown}).busy, std::nullopt);
  EXPECT_EQ(summarize({load(10, 10, 0.01)}).busy, false);
  EXPECT_EQ(summarize({LoadFacts{}}).seconds, std::nullopt);
}

TEST(EnergyRecord, GpusCpusAndMemoryAreAddedOverProcesses) {
  const EnergyFacts energy =
      collect_energy({meter("GPU counter", "GPUs", 4000), meter("GPU power", "GPUs", 4100),
                      meter("RAPL", "CPUs", 1000, 2), meter("RAPL", "memory", 100),
                      meter("RAPL", "platform", 9000), meter("GPU counter", "GPUs", 4000),
                      meter("GPU power", "GPUs", 4100)},
                     1, 2);
  EXPECT_EQ(energy.covers, "GPUs + CPUs + memory");
  EXPECT_EQ(energy.joules, 9100);
  EXPECT_EQ(energy.evaluation_joules, 910);
  EXPECT_EQ(energy.checkpoint_joules, 0);
  EXPECT_EQ(energy.idle_watts, 200);
  EXPECT_EQ(energy.seconds, 10);
  EXPECT_EQ(energy.trouble, "");
  ASSERT_EQ(energy.meters.size(), 5U);
  EXPECT_EQ(energy.meters[1].joules, 8200);
}

TEST(EnergyRecord, TheNodesOwnMeterCoversAll) {
  const EnergyFacts energy = collect_energy(
      {meter("GPU counter", "GPUs", 4000), meter("Cray pm_counters", "node", 9000),
       meter("Cray pm_counters", "CPUs", 900), meter("GPU counter", "GPUs", 4000),
       meter("Cray pm_counters", "node", 8000), meter("Cray pm_counters", "CPUs", 900)},
      2, 2);
  EXPECT_EQ(energy.covers, "node");
  EXPECT_EQ(energy.joules, 17000);
}

TEST(EnergyRecord, ASampledPowerServesWithoutACounter) {
  const EnergyFacts energy = collect_energy({meter("GPU power", "GPUs", 4100)}, 1, 1);
  EXPECT_EQ(energy.covers, "GPUs");
  EXPECT_EQ(energy.joules, 4100);
  EXPECT_EQ(energy.meters[0].sampled, true);
}

TEST(EnergyRecord, WhatIsNotMeasuredEverywhereIsNoFigure) {
  EnergyFacts energy = collect_energy({meter("RAPL", "CPUs", 1000)}, 2, 0);
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.trouble, "RAPL: it is on 1 of 2 nodes only");
  energy = collect_energy({meter("GPU counter", "GPUs", 4000)}, 1, 2);
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.trouble, "GPU counter: it covers 1 of 2 GPUs");
}

TEST(EnergyRecord, APartThatReportsNothingLeavesNoSum) {
  MeterFacts gpu = meter("GPU counter", "GPUs", 0);
  gpu.joules.reset();
  gpu.trouble = "2 s are too short: it takes 10 s";
  EnergyFacts energy = collect_energy({gpu, meter("RAPL", "CPUs", 1000)}, 1, 1);
  EXPECT_EQ(energy.covers, "GPUs + CPUs");
  EXPECT_FALSE(energy.joules);
  EXPECT_EQ(energy.trouble, "GPU counter: 2 s are too short: it takes 10 s");
  energy =
      collect_energy({gpu, meter("GPU power", "GPUs", 4100), meter("RAPL", "CPUs", 1000)}, 1, 1);
  EXPECT_EQ(energy.joules, 5100);
  EXPECT_EQ(collect_energy({}, 1, 0).covers, "");
}

}  // namespace
}  // namespace paceline
