// What the cluster at hand says of its nodes, and of how much one user may have in its queue.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "slurm/commands.h"
#include "slurm/site.h"

namespace paceline {

// Cores, not hardware threads, of the smallest node of the profile's partitions. Nothing: Slurm
// cannot be asked.
std::optional<int> cores_of_nodes(const Site& site, const SlurmCommands& slurm);

struct QueueRoom {
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);
  std::size_t elements = kUnknown;  // how many more the queue takes
  std::size_t most = kUnknown;      // how many at a time
  std::string by;                   // whose limit: "MaxSubmitJobs 500 of account science"

  bool is_known() const { return elements != kUnknown; }
};

// By the least of the profile's max_submit, the limits of account and QOS where Slurm enforces
// them, and MaxJobCount where `wanted` elements may come near it.
QueueRoom ask_queue_room(const Site& site, const SlurmCommands& slurm, std::size_t wanted);

// Whether a refusal of sbatch is about how many jobs are in the queue: later it may take them.
bool is_refused_for_now(const std::string& complaint);

}  // namespace paceline
