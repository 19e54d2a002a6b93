// Anonymizes records for reports that are published.
#pragma once

#include <string>
#include <vector>

#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

// Hosts become host-1, host-2, ...; user names and mail addresses become "user"; paths keep only
// their last part. Removes what Slurm provided (job, cluster, partition, nodes, modules), GPU
// serial numbers and PCI addresses. Applies to all texts of a record, its path, and the reasons of
// rejected records.
// that were rejected.
StoreContent anonymous(StoreContent content);

// Finds names in records and replaces them in any text.
class Disguise {
 public:
  explicit Disguise(const std::vector<Record>& records);
  std::string operator()(const std::string& text) const;

 private:
  std::vector<std::pair<std::string, std::string>> names_;  // longest first
};

}  // namespace paceline
