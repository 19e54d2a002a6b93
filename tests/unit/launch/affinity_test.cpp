#include <gtest/gtest.h>

#include <thread>

#include "engine/launch/topology.h"
#include "tests/unit/launch/expect_error.h"

namespace paceline {
namespace {

using Sets = std::vector<CpuSet>;

TEST(Topology, CoresThreadsAndNodesAreReported) {
  const Topology machine = synthetic_topology("numa:2 core:2 pu:2");
  ASSERT_EQ(machine.cpus.size(), 8U);
  EXPECT_EQ(machine.machine_cores, 4);
  EXPECT_EQ(machine.usable_cores(), 4);
  EXPECT_EQ(machine.numa_nodes, 2);
  EXPECT_TRUE(machine.hyperthreads());
  EXPECT_EQ(machine.cpus[1].core, 0);
  EXPECT_EQ(machine.cpus[7].core, 3);
  EXPECT_EQ(machine.cpus[7].numa, 1);
}

TEST(Topology, UnlikeArmCpusHaveUnlikeNames) {
  EXPECT_EQ(arm_model("0x41", "0xd4f"), "Neoverse-V2");
  EXPECT_EQ(arm_model("0x46", "0x001"), "A64FX");
  EXPECT_EQ(arm_model("0x6d", "0xd49"), "aarch64 CPU, implementer 0x6d, part 0xd49");
  EXPECT_EQ(arm_model("0x41", ""), "unknown CPU");
  EXPECT_EQ(arm_model("", ""), "unknown CPU");
}

TEST(Topology, ThisMachine) {
  const Topology machine = topology_of_machine();
  EXPECT_EQ(machine.cpus.size(), usable_cpus().size());
  EXPECT_GE(machine.machine_cpus, static_cast<int>(machine.cpus.size()));
  EXPECT_GE(machine.numa_nodes, 1);
  EXPECT_GT(machine.memory_bytes, 1 << 20);
}

TEST(SplitCpus, ContiguousSets) {
  const auto cpus = synthetic_topology("numa:2 core:4 pu:1").cpus;
  EXPECT_EQ(split_cpus(cpus, 2, 4), (Sets{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(split_cpus(cpus, 3, 2), (Sets{{0, 1}, {2, 3}, {4, 5}}));
}

TEST(SplitCpus, OneThreadACoreWhileThereAreCoresEnough) {
  const auto cpus = synthetic_topology("core:4 pu:2").cpus;
  EXPECT_EQ(split_cpus(cpus, 2, 2), (Sets{{0, 2}, {4, 6}}));
  EXPECT_EQ(split_cpus(cpus, 2, 4), (Sets{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(split_cpus(cpus, 5, 1), (Sets{{0}, {1}, {2}, {3}, {4}}));
}

TEST(SplitCpus, SiblingsNumberedApartStayTogether) {
  // Linux numbers the second threads after all first ones: 0 and 2 are one core.
  const std::vector<Cpu> cpus = {{0, 0, 0}, {2, 0, 0}, {1, 1, 0}, {3, 1, 0}};
  EXPECT_EQ(split_cpus(cpus, 2, 2), (Sets{{0, 2}, {1, 3}}));
  EXPECT_EQ(split_cpus(cpus, 2, 1), (Sets{{0}, {1}}));
}

// Descriptions of real machines, by lstopo (tests/data/README.md).
Topology stored(const std::string& name) {
  return stored_topology(std::string(PACELINE_SOURCE_DIR) + "/tests/data/topologies/" + name);
}

TEST(Topology, GpusAreOnANode) {
  const Topology power = stored("power8-p100.xml");
  EXPECT_EQ(power.numa_of_gpu("0002:01:00.0"), 0);
  EXPECT_EQ(power.numa_of_gpu("000A:01:00.0"), 1);
  EXPECT_EQ(power.numa_of_gpu("0009:01:00.0"), std::nullopt);
  EXPECT_EQ(power.gpu_numa.size(), 4U) << "and no other device";
  const Topology dgx = stored("nvidia-dgx2.xml");
  EXPECT_EQ(dgx.gpu_numa.size(), 16U);
  EXPECT_EQ(dgx.numa_of_gpu("00000000:34:00.0"), 0);
  EXPECT_EQ(dgx.numa_of_gpu("00000000:B7:00.0"), 1);
  EXPECT_TRUE(synthetic_topology("numa:2 core:2 pu:1").gpu_numa.empty());
  EXPECT_EQ(power.find_nodes({power.cpus.front().id, power.cpus.back().id}), (std::set<int>{0, 1}));
}

TEST(SplitCpus, NearAGpuWhileItsNodeHasEnough) {
  const auto cpus = synthetic_topology("numa:2 core:4 pu:1").cpus;
  EXPECT_EQ(split_cpus(cpus, 2, 2, {1, 0}), (Sets{{4, 5}, {0, 1}}));
  EXPECT_EQ(split_cpus(cpus, 4, 2, {1, 1, 0, 0}), (Sets{{4, 5}, {6, 7}, {0, 1}, {2, 3}}));
  EXPECT_EQ(split_cpus(cpus, 3, 2, {1, 1, 1}), (Sets{{4, 5}, {6, 7}, {0, 1}})) << "no third there";
  EXPECT_EQ(split_cpus(cpus, 2, 4, {kAnyNuma, 0}), (Sets{{4, 5, 6, 7}, {0, 1, 2, 3}}));
  EXPECT_EQ(split_cpus(cpus, 1, 6, {1}), (Sets{{0, 1, 2, 3, 4, 5}})) << "more than a node has";
  EXPECT_EQ(split_cpus(cpus, 2, 2, {7, kAnyNuma}), split_cpus(cpus, 2, 2)) << "not in the mask";
  const auto threads = synthetic_topology("numa:2 core:2 pu:2").cpus;
  EXPECT_EQ(split_cpus(threads, 2, 2, {1, 0}), (Sets{{4, 6}, {0, 2}})) << "one thread a core";
  EXPECT_EQ(split_cpus(threads, 4, 4, {1, 1, 1, 1}), split_cpus(threads, 4, 4)) << "shared";
}

TEST(SplitCpus, WrapsWhereOversubscribed) {
  const auto cpus = synthetic_topology("core:2 pu:1").cpus;
  EXPECT_EQ(split_cpus(cpus, 4, 1), (Sets{{0}, {1}, {0}, {1}}));
  EXPECT_EQ(split_cpus(cpus, 2, 2), (Sets{{0, 1}, {0, 1}}));
}

TEST(SplitCpus, ASetLargerThanTheMaskIsRefused) {
  const auto cpus = synthetic_topology("core:2 pu:1").cpus;
  EXPECT_ERROR(split_cpus(cpus, 1, 3), usage, "one task needs 3 CPUs, but only 2 are usable");
  EXPECT_ERROR(split_cpus(cpus, 1, 0), usage, "0 CPUs");
}

TEST(CpusOfTask, OwnMaskOrSharedMask) {
  ProcessRank process;
  process.local_rank = 1;
  process.local_size = 2;
  EXPECT_EQ(cpus_of_task({{4, 4, 0}, {5, 5, 0}}, process, 2), (CpuSet{4, 5}));  // ours alone
  EXPECT_EQ(cpus_of_task({{4, 4, 0}, {5, 5, 0}}, process, 1), (CpuSet{5}));     // shared by both
}

TEST(Affinity, BoundThreadKeepsToItsCpu) {
  const CpuSet all = usable_cpus();
  CpuSet seen;
  std::thread([&] {
    bind_this_thread({all.back()});
    seen = usable_cpus();
  }).join();
  EXPECT_EQ(seen, CpuSet{all.back()});
  EXPECT_EQ(usable_cpus(), all);
  EXPECT_ERROR(bind_this_thread({}), usage, "cannot be bound");
}

TEST(Affinity, Format) {
  EXPECT_EQ(format_cpus({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_cpus({5}), "5");
  EXPECT_EQ(format_cpus({1, 3, 4}), "1,3-4");
  EXPECT_EQ(format_cpus({}), "");
}

}  // namespace
}  // namespace paceline
