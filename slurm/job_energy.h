// Energy that Slurm's accounting has of jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slurm/commands.h"

namespace paceline {

struct JobEnergy {
  std::string plugin;        // AcctGatherEnergyType: "pm_counters", "rapl", "ipmi"
  double joules = 0;         // ConsumedEnergyRaw
  std::size_t elements = 0;  // that have it

  // "energy by Slurm (pm_counters): 12.3 Wh of 4 jobs, ..." and what it covers.
  std::string text() const;
};

// Of whole jobs: their nodes, with setup and all runs of an element, and with other jobs on shared
// nodes. Empty without such a plugin, accounting, or figures.
std::optional<JobEnergy> ask_energy(const SlurmCommands& slurm,
                                    const std::vector<std::int64_t>& jobs);

}  // namespace paceline
