// Decides which records were made on nodes like those of a study's jobs. Records of the login node
// or another cluster do not complete a job's run.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "results/machine.h"
#include "results/store.h"
#include "slurm/journal.h"

namespace paceline {

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
