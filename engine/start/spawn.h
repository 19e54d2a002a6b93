// Starts the ranks of a run, through mpirun or directly, and reports one verdict for all.
#pragma once

#include <string>
#include <vector>

#include "engine/failure/verdict.h"
#include "engine/launch/process_rank.h"

namespace paceline {

struct SpawnRequest {
  std::vector<std::string> command;  // the program (a path) and its arguments
  int ranks = 1;
  Environment environment;  // of the ranks; environment_of_process(), mostly
  // The ranks look for requests (stop_requests.h): SIGTERM and SIGUSR1 are left to them as such.
  bool stops_between_steps = false;
  // Ranks none of which gives a sign of life for so long (their flight rings tell) are ended: they
  // are all stopped, and nobody is there to miss the others. 0: never.
  double silence_seconds = 0;
};

// Runs to the end. Standard output of the ranks goes where ours goes; their standard error too,
// without the launcher's own words. SIGINT and SIGTERM are passed on (see child.h). Each rank must
// run its work in run_rank(). Throws usage, with the cure, if there is no mpirun.
RunVerdict spawn_ranks(const SpawnRequest& request);

// The same without a launcher, on this machine: the ranks are our children, and find their place in
// torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE). They are not bound. A rank
// that is left when another has failed has some seconds to end.
RunVerdict spawn_direct(const SpawnRequest& request);

}  // namespace paceline
