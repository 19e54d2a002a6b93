// The record's section about the load of the machine.
#pragma once

#include <vector>

#include "engine/meter/machine_load.h"
#include "results/run_record.h"
#include "run/preflight.h"
#include "run/world.h"

namespace paceline {

// If the machine looks busy, warns which other processes use the CPUs of this host's ranks. Call on
// one rank per host, before the first step. Costs nothing if at most `ranks_here` tasks run.
void warn_of_busy_cpus(const std::vector<RankCard>& cards, int ranks_here);

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
LoadFacts summarize(std::vector<MachineLoad> processes);

}  // namespace paceline
