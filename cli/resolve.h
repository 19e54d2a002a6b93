// What a run would be: its parameters with the defaults filled in, and what tells it from others.
#pragma once

#include <string>

#include "results/parameters.h"

namespace paceline {

struct ResolvedRun {
  Point parameters;
  std::string identity;   // of workload and parameters
  std::string data_hash;  // of the data set's files
  std::string build;      // version, commit, dirty flag
};

// Of one workload; its data set is hashed once. Throws usage or input as `paceline train` would.
class RunResolver {
 public:
  explicit RunResolver(std::string workload);
  ResolvedRun resolve(const Point& given);

 private:
  std::string workload_, data_hash_;
};

}  // namespace paceline
