// The sections of a record that meters fill: energy, GPUs, the load of the machine.
#pragma once

#include <memory>
#include <vector>

#include "engine/facts/hardware.h"
#include "engine/meter/energy_meter.h"
#include "engine/meter/machine_load.h"
#include "engine/train/observers/observer.h"
#include "run/resolve.h"
#include "run/world.h"

namespace paceline {

// The record's section about energy.

// Watches this process's GPUs and, on the first process of a node, the node's counters.
class EnergyReport {
 public:
  EnergyReport(const ChosenGpus& gpus, bool is_first_of_node);

  // Sleeps on all ranks (collective), or on this process (null), as long as the slowest meter takes
  // to tell the power before the first step.
  void measure_idle(World* world);
  void enter(RunPart part);

  // Combines all nodes, and returns the same on every rank. Collective.
  EnergyFacts collect(World& world, int nodes);
  // The energy of this node, which says nothing about other nodes.
  EnergyFacts collect_here(int nodes);

 private:
  std::vector<MeterFacts> meters();

  std::size_t gpus_;
  std::unique_ptr<EnergyWatch> watch_;
};

// Adds up the meters of all processes, and chooses among them. A meter that is not on every node,
// or not of each of `gpus` GPUs (0: replicas are on cores), has a trouble instead of joules. The
// node's own meter comes first, then modules, then GPUs, CPUs and memory together, each by a
// counter rather than by samples. A part that is measured, but tells nothing, leaves the sum
// without joules.
EnergyFacts collect_energy(const std::vector<MeterFacts>& of_processes, int nodes, int gpus);

// The record's sections about GPUs.

// GPU usage of all replicas, in rank order.
struct GpuUse {
  std::vector<GpuFacts> each;
  std::optional<double> utilization;  // mean over GPUs that report it
  bool throttled = false;             // any GPU, by heat or failing power
};

// Watches this process's GPUs from construction on. Does nothing without GPUs. An unavailable
// driver causes a warning only.
class GpuReport {
 public:
  // `cpus` of each replica here.
  GpuReport(const ChosenGpus& gpus, const std::vector<CpuSet>& cpus);
  // If some are on another NUMA node than their GPU, of all ranks (collective), or of this process
  // (null).
  void warn_of_far_cpus(World* world) const;

  // The same on every rank. Collective.
  GpuUse collect(World& world);
  // Only for this process's GPUs.
  GpuUse collect_here();

 private:
  std::vector<GpuFacts> stop();

  std::vector<GpuFacts> places_;  // where each GPU and its replica's CPUs are
  std::unique_ptr<GpuWatch> watch_;
};

// The record's section about the load of the machine.

inline constexpr char kBusyCpus[] = "other processes use the CPUs of this run: ";

// If the machine looks busy, warns which other processes use the CPUs of this host's ranks. Call on
// one rank per host, before the first step. Costs nothing if at most `ranks_here` tasks run.
void warn_of_busy_cpus(const std::vector<RankCard>& cards, int ranks_here);

// Afterwards: if it was busy, warns that the times are unreliable.
void warn_of_busy_machine(const LoadFacts& load);

// Watches this process's CPUs from construction on.
class LoadReport {
 public:
  explicit LoadReport(const std::vector<CpuSet>& cpus);

  // Combines all ranks, and returns the same on every rank. Empty facts are unknown. If ranks share
  // CPUs, the share of other processes is unknown. Collective.
  LoadFacts collect(World& world, bool ranks_share_cpus) const;

 private:
  LoadMeter meter_;
};

// Combines one entry per process: sums, and the worst of shares, because a step waits for the
// slowest rank.
LoadFacts summarize(std::vector<LoadFacts> processes);

}  // namespace paceline
