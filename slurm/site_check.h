// Whether the cluster at hand is the one that a site profile describes. For paceline doctor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "slurm/commands.h"
#include "slurm/site.h"

namespace paceline {

struct SiteFinding {
  std::string what, cure;
  bool blocks = false;  // a submission would be refused, or its jobs would fail
};

struct SiteReport {
  std::vector<std::pair<std::string, std::string>> facts;  // name, text
  std::vector<SiteFinding> findings;
};

// Asks Slurm for its version, limits, partitions, GPUs and kinds of MPI, and looks for the files
// that the profile names without a variable. Sends no job.
SiteReport check_site(const Site& site, const SlurmCommands& slurm);

}  // namespace paceline
