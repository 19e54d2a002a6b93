// Reduces a run of several ranks to one last line and exit code.
#pragma once

#include <string>
#include <vector>

#include "engine/core/child.h"
#include "engine/failure/failure_snapshot.h"
#include "engine/failure/rank_status.h"

namespace paceline {

struct RunVerdict {
  int exit_code = 0;
  std::string line;  // the error; empty: success
  // The launcher's own output, if no rank gave a reason; print it before the line.
  std::string noise;
};

// A cause takes precedence over its consequences, in this order: a rank's own error (the earliest);
// an exit code of ranks that ended normally; a signal that stopped us; a rank that was seen killed;
// a stall; a rank that vanished; ranks that lost a peer; a failure after all work was done. With
// flight rings, the line says how far the rank was and what the others wait for.
//
// Under a launcher, only the launcher's end is known, with its standard error and the end of
// standard output, where MPICH reports a killed rank.
struct LauncherWords {
  std::string errors, output;
};
RunVerdict judge(int ranks, const std::vector<RankStatus>& statuses, const Watch& launcher,
                 const LauncherWords& words, const FailureSnapshot& snapshot = {});

// For ranks that are our own children, with one end per rank.
RunVerdict judge(const std::vector<RankStatus>& statuses, const WatchOfMany& watch,
                 const std::string& program, const FailureSnapshot& snapshot = {});

// Based only on the files of the ranks, once none of them runs any more.
RunVerdict judge_remains(int ranks, const std::vector<RankStatus>& statuses,
                         const FailureSnapshot& snapshot);

}  // namespace paceline
