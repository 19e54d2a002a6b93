// Checks whether a site profile matches the cluster, for paceline doctor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "slurm/commands.h"
#include "slurm/site.h"

namespace paceline {

struct SiteFinding {
  std::string what, cure;
  bool blocks = false;  // submissions would be rejected, or jobs would fail
};

struct SiteReport {
  std::vector<std::pair<std::string, std::string>> facts;  // name, text
  std::vector<SiteFinding> findings;
};

// Asks Slurm for its version, limits, partitions, GPUs and MPI types, and checks the files in the
// profile (those without variables). Submits no job.
SiteReport check_site(const Site& site, const SlurmCommands& slurm);

}  // namespace paceline
