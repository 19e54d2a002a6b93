// Checks a process's environment for causes of slow or disturbed communication. None of them stops
// a run.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/core/environment.h"

namespace paceline {

struct NodeScan {
  std::vector<std::string> fabrics;  // fast network devices: "mlx5_0", "hfi1_0", "cxi0"
  int gpus_of_node = 0;              // known to the driver, usable or not
  std::set<std::string> other_jobs;  // Slurm jobs on this node; see jobs_here()
};

// Reads this node's state. `root` is a prefix of /sys, /dev and /proc, for tests.
NodeScan scan_node(const Environment& environment, const std::filesystem::path& root = "/");

// Slurm jobs that have a step on this node, from the process titles of Slurm's daemons. Empty
// outside of a job, or if other users' processes are hidden.
std::optional<std::set<std::string>> jobs_here(const Environment& environment,
                                               const std::filesystem::path& root = "/");

struct Warning {
  std::string what, cure;
};

// Warns of proxies, MPI and NCCL settings that bypass a fast network, GPUs hidden from each other,
// and other jobs on this node.
std::vector<Warning> find_remarks(const Environment& environment, const NodeScan& node);

// Modules (colon-separated) that are loaded now and were missing or of another version at build
// time, and the reverse. Empty if either list is unknown.
std::vector<Warning> remarks_on_modules(const std::string& at_build, const std::string& now);

}  // namespace paceline
