// One last line and exit code for a run of several ranks.
#pragma once

#include <string>
#include <vector>

#include "engine/core/child.h"
#include "engine/failure/failure_snapshot.h"
#include "engine/failure/rank_status.h"

namespace paceline {

struct RunVerdict {
  int exit_code = 0;
  std::string line;   // what went wrong, or empty
  std::string noise;  // the launcher's own words, where no rank told why; print before the line
};

// A cause wins over its consequences, in this order: a rank's own error (the earliest); an exit
// code of ranks that ended well; a signal we were stopped by; a rank that was seen killed; a stall;
// a rank that vanished without a word; ranks that lost a peer; a bad end after all work was done.
// Where flight rings are left, the line says how far the rank was and what the others wait in.
//
// Under a launcher only its own end was watched, and what it said: its words on standard error, and
// the end of all that came on standard output, where MPICH tells of a killed rank.
struct LauncherWords {
  std::string errors, output;
};
RunVerdict judge(int ranks, const std::vector<RankStatus>& statuses, const Watch& launcher,
                 const LauncherWords& words, const FailureSnapshot& snapshot = {});

// Of ranks that are our own children: their ends are known, one a rank.
RunVerdict judge(const std::vector<RankStatus>& statuses, const WatchOfMany& watch,
                 const std::string& program, const FailureSnapshot& snapshot = {});

// Of what ranks left behind alone, once none of them runs any more.
RunVerdict judge_remains(int ranks, const std::vector<RankStatus>& statuses,
                         const FailureSnapshot& snapshot);

}  // namespace paceline
