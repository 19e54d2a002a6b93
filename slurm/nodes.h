// Which records were made on nodes like those that a study's jobs run on. A study may also have
// records of the login node, or of another cluster: these stand in for no run of a job.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "results/machine.h"
#include "results/store.h"
#include "slurm/journal.h"

namespace paceline {

// What is known of where jobs go. Empty: nothing.
struct JobPlace {
  std::string cluster, partition;  // as Slurm calls them; several partitions by commas
  std::optional<Machine> node;     // as the site's profile describes it
};

class Nodes {
 public:
  // `journal` says which sessions were of jobs.
  Nodes(const Journal& journal, const StoreContent& store, JobPlace place = {});

  // Empty where a record counts: it was made by a job of this cluster and partition, or by one that
  // the journal knows, or on a machine like those of such jobs or of the profile. Else its machine.
  std::string other_machine(const Record& record) const;

  // Those of `store` that count.
  StoreContent counted(const StoreContent& store) const;

 private:
  bool made_there(const Record& record) const;
  bool is_like_a_node(const Machine& machine) const;

  std::set<std::string> sessions_;
  JobPlace place_;
  std::vector<Machine> seen_;
};

}  // namespace paceline
