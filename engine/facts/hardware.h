// How a run used GPUs, CPUs and energy.
#pragma once

#include <string>
#include <vector>

#include "engine/facts/fact.h"

namespace paceline {

// One GPU over one run. Means and shares are over samples, ten a second. Of many GPUs but the first
// a record keeps only what differs from card to card.
struct GpuFacts {
  PACELINE_FACT(fact::Text, name, "");
  PACELINE_FACT(fact::Text, pci, "bus address");
  PACELINE_FACT(fact::Text, uuid, "");
  PACELINE_FACT(std::optional<int>, numa_node, "that the GPU is attached to, if there are several");
  PACELINE_FACT(fact::Text, cpus_numa_nodes, "of its replica's CPUs: \"0-1\"");
  PACELINE_FACT(fact::Text, pcie, "its slot: \"gen 5 x16\", \"gen 5 x8 of x16\"");
  PACELINE_FACT(
      fact::Text, links,
      "to the node's other GPUs, as nvidia-smi topo names them: \"7 by NV18\", \"1 by NV4, "
      "2 by SYS\"");
  PACELINE_FACT(fact::Text, driver, "its version");
  PACELINE_FACT(fact::Count, samples, "");
  PACELINE_FACT(fact::Real, seconds, "watched");
  PACELINE_FACT(fact::Texts, clock_limits,
                "all that limited the clocks in some sample, except idleness: \"power cap\"");
  PACELINE_FACT(fact::Real, utilization, "", kShare);
  PACELINE_FACT(fact::Real, memory_utilization, "", kShare);
  PACELINE_FACT(fact::Real, sm_mhz, "mean");
  PACELINE_FACT(fact::Real, least_sm_mhz, "the lowest seen");
  PACELINE_FACT(fact::Real, most_sm_mhz, "maximum of the card");
  PACELINE_FACT(fact::Real, memory_mhz, "mean");
  PACELINE_FACT(fact::Real, watts, "mean");
  PACELINE_FACT(fact::Real, watts_limit, "in force");
  PACELINE_FACT(fact::Real, joules, "by the card's energy counter");
  PACELINE_FACT(fact::Real, celsius, "maximum", kAny);
  PACELINE_FACT(fact::Count, memory_bytes, "maximum in use, by all processes");
  PACELINE_FACT(fact::Count, memory_bytes_total, "");
  PACELINE_FACT(fact::Count, uncorrected_errors, "ECC errors during the run");
  PACELINE_FACT(fact::Real, power_capped_share, "of the samples");
  PACELINE_FACT(fact::Flag, ecc, "");
  PACELINE_FACT(fact::Flag, mig, "");
  PACELINE_FACT(fact::Flag, mps, "");
  PACELINE_FACT(fact::Text, compute_mode, "");
  PACELINE_FACT(fact::Flag, throttled,
                "by heat or failing power in some sample, so comparisons exclude the run; a power "
                "cap does not count, because large cards run at theirs all the time");
  PACELINE_END_FACTS
};

// "1 by NV4, 2 by SYS", of one path for each other GPU.
std::string counted_paths(const std::vector<std::string>& paths);

// Whether the nodes are known, and none of its replica's CPUs is on the GPU's.
bool has_far_cpus(const GpuFacts& gpu);
inline constexpr char kBindNearGpus[] =
    "bind tasks near their GPUs (srun --gpu-bind=closest), or widen their masks, with "
    "--cpu-binding "
    "near-gpu";

// All counters of one kind, over all nodes.
struct MeterFacts {
  PACELINE_FACT(fact::Text, meter, "\"RAPL\"");
  PACELINE_FACT(fact::Text, covers, "\"CPUs\"");
  PACELINE_FACT(fact::Flag, sampled, "integrated from samples of a power; else a counter");
  PACELINE_FACT(fact::Count, counters, "");
  PACELINE_FACT(fact::Real, seconds, "of training");
  PACELINE_FACT(fact::Real, joules, "of training; empty if they are not valid, see trouble",
                kPositive);
  PACELINE_FACT(fact::Real, evaluation_joules, "");
  PACELINE_FACT(fact::Real, checkpoint_joules, "");
  PACELINE_FACT(fact::Real, idle_watts, "before the first step");
  PACELINE_FACT(fact::Text, trouble, "why there are no joules");
  PACELINE_END_FACTS
};

// The sum of the meters that cover most without counting anything twice.
struct EnergyFacts {
  PACELINE_FACT(fact::Text, covers, "\"GPUs + CPUs + memory\", \"node\"");
  PACELINE_FACT(fact::Flag, shared, "other jobs were on a node whose meter counts them, too");
  PACELINE_FACT(fact::Real, seconds, "of training");
  PACELINE_FACT(fact::Real, joules, "of training", kPositive);
  PACELINE_FACT(fact::Real, evaluation_joules, "");
  PACELINE_FACT(fact::Real, checkpoint_joules, "");
  PACELINE_FACT(fact::Real, idle_watts, "before the first step");
  PACELINE_FACT(fact::Text, trouble, "why there are no joules");
  PACELINE_FACT(std::vector<MeterFacts>, meters, "");
  PACELINE_END_FACTS
};

// A port of a network card, as the kernel states it.
struct NetworkPort {
  PACELINE_FACT(fact::Text, name, "\"mlx5_0\", \"eth0\"");
  PACELINE_FACT(fact::Text, link, "\"InfiniBand\", \"Ethernet\"");
  PACELINE_FACT(fact::Real, gbit_per_second, "", kPositive);
  PACELINE_FACT(std::optional<int>, numa_node, "that it is attached to, if known");
  PACELINE_END_FACTS
};

// One node; hardware threads, usable or not.
struct NodeFacts {
  PACELINE_FACT(std::optional<int>, cpus, "");
  PACELINE_FACT(fact::Count, memory_bytes, "");
  PACELINE_FACT(std::vector<NetworkPort>, network, "ports that are up");
  PACELINE_END_FACTS
};

// "InfiniBand 200 Gb/s (mlx5_0, mlx5_1), Ethernet of unknown rate (eth0)"; empty: no port.
std::string describe_ports(const std::vector<NetworkPort>& ports);

// How busy other processes kept the run's CPUs, from before its first step to after its last.
// Shares are of CPU time. Of several processes the worst.
struct LoadFacts {
  PACELINE_FACT(fact::Flag, busy, "others slowed the run");
  PACELINE_FACT(fact::Text, why, "the reason, in words");
  PACELINE_FACT(fact::Real, seconds, "watched");
  PACELINE_FACT(fact::Real, cpu_seconds, "the same, summed over the CPUs of all processes");
  PACELINE_FACT(fact::Real, other_cpu_share, "of all CPUs, used by other processes", kShare);
  PACELINE_FACT(fact::Real, worst_other_cpu_share, "the same, of the worst process's CPUs", kShare);
  PACELINE_FACT(fact::Real, steal_share, "taken by the hypervisor", kShare);
  PACELINE_FACT(fact::Real, cpu_limited_share, "of the periods of its cgroup's limit");
  PACELINE_FACT(fact::Real, cpu_pressure_share, "some task waited for a CPU");
  PACELINE_FACT(fact::Real, load_average, "before the run");
  PACELINE_FACT(fact::Count, runnable_tasks_before, "of the worst process");
  PACELINE_FACT(fact::Count, runnable_tasks_after, "of the worst process");
  PACELINE_FACT(fact::Count, involuntary_switches, "summed over processes");
  PACELINE_FACT(fact::Count, thermal_throttles, "of cores, summed over processes");
  PACELINE_FACT(fact::Real, least_mhz, "mean of a process's CPUs at the end, of the slowest");
  PACELINE_FACT(fact::Real, involuntary_switches_per_step, "");
  PACELINE_FACT(fact::Count, peak_memory_bytes, "resident, summed over processes");
  PACELINE_END_FACTS
};

}  // namespace paceline
