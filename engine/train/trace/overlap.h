// How much of the communication ran beside computing.
#pragma once

#include <vector>

#include "engine/core/trace.h"

namespace paceline {

struct Overlap {
  double communication = 0;  // seconds of all collectives
  double hidden = 0;         // of these, while this rank computed
  double share() const { return communication > 0 ? hidden / communication : 0; }
};

// Of one rank, on its own clock. Phases forward, backward and update count as computing; waiting
// for communication or input does not. Where rings dropped what was older, only the time that both
// still have counts. Both in order of their ends.
Overlap overlap_of(const std::vector<TraceSpell>& communication,
                   const std::vector<TraceSpell>& phases);

}  // namespace paceline
