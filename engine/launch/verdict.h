// One last line and exit code for a run of several ranks.
#pragma once

#include <string>
#include <vector>

#include "engine/core/child.h"
#include "engine/launch/status.h"

namespace paceline {

struct Verdict {
  int exit_code = 0;
  std::string line;   // what went wrong, or empty
  std::string noise;  // the launcher's own words, where no rank told why; print before the line
};

// A cause wins over its consequences, in this order: a rank's own error (the earliest); a signal
// we were stopped by; a rank that the launcher saw killed; a stall; a rank that vanished without
// a word; ranks that lost a peer; an exit code of ranks that ended well.
Verdict judge(int ranks, const std::vector<RankStatus>& statuses, const Watch& launcher,
              const std::string& noise);

// Of ranks that are our own children: their ends are known, one a rank.
Verdict judge(const std::vector<RankStatus>& statuses, const WatchOfMany& watch,
              const std::string& program);

}  // namespace paceline
