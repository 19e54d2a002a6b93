// Starts the ranks of a run, through mpirun or directly, and returns one verdict for all.
#pragma once

#include <string>
#include <vector>

#include "engine/failure/verdict.h"
#include "engine/launch/process_rank.h"

namespace paceline {

struct SpawnRequest {
  std::vector<std::string> command;  // the program (a path) and its arguments
  int ranks = 1;
  Environment environment;  // of the ranks; usually environment_of_process()
  // The ranks handle stop requests (stop_requests.h): SIGTERM and SIGUSR1 are forwarded as
  // requests.
  bool stops_between_steps = false;
  // Ends the run if no rank gives a sign of life (in its flight ring) for this long, or none has
  // begun after it: a launcher may hang, and if all ranks are stopped, none can report the others.
  // 0: never.
  double silence_seconds = 0;
};

// Runs to the end. The ranks' standard output is inherited, and so is their standard error without
// the launcher's messages. Forwards SIGINT and SIGTERM (see child.h). Each rank must run its work
// in run_rank(). Throws usage with a cure if there is no mpirun.
RunVerdict spawn_ranks(const SpawnRequest& request);

// The same without a launcher, on this machine: ranks are child processes and find their place in
// torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE). They are not bound. After
// one rank fails, the others have a few seconds to end.
RunVerdict spawn_direct(const SpawnRequest& request);

}  // namespace paceline
