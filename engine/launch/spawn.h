// Starts the ranks of a run through mpirun and reports one verdict for all.
#pragma once

#include <string>
#include <vector>

#include "engine/launch/place.h"
#include "engine/launch/verdict.h"

namespace paceline {

struct SpawnRequest {
  std::vector<std::string> command;  // the program (a path) and its arguments
  int ranks = 1;
  Environment environment;  // of the ranks; environment_of_process(), mostly
};

// Runs to the end. Standard output of the ranks goes where ours goes; their standard error too,
// without the launcher's own words. SIGINT and SIGTERM are passed on (see child.h). Each rank must
// run its work in run_rank(). Throws usage, with the cure, if there is no mpirun.
Verdict spawn_ranks(const SpawnRequest& request);

}  // namespace paceline
