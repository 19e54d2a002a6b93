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

ResolvedRun resolve_run(const std::string& workload, const Point& given);

}  // namespace paceline
