// Records without what names people and places: for reports that are shown to others.
#pragma once

#include <string>
#include <vector>

#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

// Hosts become host-1, host-2, ...; users and mail addresses "user"; of paths the last part stays;
// what Slurm gave (job, cluster, partition, nodes, modules), GPU serial numbers and PCI places go.
// This holds for every text of a record, where it came from included, and for the reasons of those
// that were rejected.
StoreContent anonymous(StoreContent content);

// Finds names in records and hides them in any text.
class Disguise {
 public:
  explicit Disguise(const std::vector<Record>& records);
  std::string operator()(const std::string& text) const;

 private:
  std::vector<std::pair<std::string, std::string>> names_;  // longest first
};

}  // namespace paceline
