// The record's section on how busy the machine was.
#pragma once

#include <vector>

#include "engine/meter/machine_load.h"
#include "results/run_record.h"
#include "run/preflight.h"
#include "run/world.h"

namespace paceline {

// Says who else computes on the CPUs of this host's ranks, where the machine looks busy: for one
// rank a host, before the first step. Costs nothing where no more than `ranks_here` tasks run.
void warn_of_busy_cpus(const std::vector<RankCard>& cards, int ranks_here);

// Watches this process's CPUs from when it is made.
class LoadReport {
 public:
  explicit LoadReport(const std::vector<CpuSet>& cpus);

  // Of all ranks together, on every rank; nothing is known where no kernel tells. Where ranks share
  // CPUs, what of these went to others is not known. Collective.
  LoadFacts collect(World& world, bool ranks_share_cpus) const;

 private:
  LoadMeter meter_;
};

// One a process: sums, and of shares the worst, as the others of a step wait for the slowest.
LoadFacts summary_of(std::vector<MachineLoad> processes);

}  // namespace paceline
