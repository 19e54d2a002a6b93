// What around a process makes its communication slower than the machine could, or disturbs it. None
// of it stops a run.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/core/environment.h"

namespace paceline {

struct Surroundings {
  std::vector<std::string> fabrics;  // devices of a fast network: "mlx5_0", "hfi1_0", "cxi0"
  int gpus_of_node = 0;              // that the driver knows, whoever may use them
  std::set<std::string> other_jobs;  // of Slurm, on this node; see jobs_here()
};

// As the kernel of this node shows them. `root` stands before /sys, /dev and /proc, for tests.
Surroundings look_around(const Environment& environment, const std::filesystem::path& root = "/");

// The jobs of Slurm that have a step on this node, by the titles of its daemons' processes; nothing
// where the system hides other users' processes, or outside of a job.
std::optional<std::set<std::string>> jobs_here(const Environment& environment,
                                               const std::filesystem::path& root = "/");

struct Warning {
  std::string what, cure;
};

// Proxies, MPI's and NCCL's settings that leave a fast network unused, GPUs hidden from each other,
// and other jobs on this node.
std::vector<Warning> remarks_on(const Environment& environment, const Surroundings& surroundings);

// Modules (":" between them) that are loaded now and were not, or had another version, where this
// program was built, and the other way round. Empty where nothing is known of either.
std::vector<Warning> remarks_on_modules(const std::string& at_build, const std::string& now);

}  // namespace paceline
