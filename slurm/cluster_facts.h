// What Slurm reports about the nodes and about the limits of the queue.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "results/machine.h"
#include "results/store.h"
#include "slurm/commands.h"
#include "slurm/journal.h"
#include "slurm/site.h"

namespace paceline {

// What nodes in the profile's partitions have. 0: Slurm did not say.
struct NodeCounts {
  int cores = 0;  // not hardware threads; of the smallest node
  int cpus = 0;   // as Slurm counts them; of the largest node
  int gpus = 0;   // of the node with most
};
NodeCounts count_nodes(const Site& site, const SlurmCommands& slurm);

std::string user_name();  // of this process

struct QueueRoom {
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);
  std::size_t elements = kUnknown;  // array elements that the queue accepts now
  std::size_t most = kUnknown;      // maximum at a time
  std::string by;                   // the limit: "MaxSubmitJobs of account science is 500"

  bool is_known() const { return elements != kUnknown; }
};

// The smallest of the profile's max_submit, the limits of account and QOS if Slurm enforces them,
// and MaxJobCount if `wanted` elements may come near it.
QueueRoom ask_queue_room(const Site& site, const SlurmCommands& slurm, std::size_t wanted);

// Whether sbatch rejected a job because of the number of jobs in the queue, and may accept it
// later.
bool is_refused_for_now(const std::string& complaint);

// Decides which records were made on nodes like those of a study's jobs. Records of the login node
// or another cluster do not complete a job's run.

// Known properties of where jobs run. Empty: unknown.
struct JobPlace {
  std::string cluster, partition;  // Slurm's names; several partitions are comma-separated
  std::optional<Machine> node;     // from the site profile
};

class Nodes {
 public:
  // `journal` identifies the sessions of jobs.
  Nodes(const Journal& journal, const StoreContent& store, JobPlace place = {});

  // Empty if a record counts: made by a job of this cluster and partition, by a job in the journal,
  // or on a machine like those of such jobs or of the profile. Else its machine.
  std::string other_machine(const Record& record) const;

  // The records of `store` that count.
  StoreContent counted(const StoreContent& store) const;

 private:
  bool made_there(const Record& record) const;
  bool is_like_a_node(const Machine& machine) const;

  std::set<std::string> sessions_;
  JobPlace place_;
  std::vector<Machine> seen_;
};

}  // namespace paceline
