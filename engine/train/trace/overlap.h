// How much of the communication overlapped with computation.
#pragma once

#include <vector>

#include "engine/core/trace.h"

namespace paceline {

struct Overlap {
  double communication = 0;  // seconds of all collectives
  double hidden = 0;         // the part during which this rank computed
  double share() const { return communication > 0 ? hidden / communication : 0; }
};

// For one rank, on its own clock. The phases forward, backward and update count as computing;
// waiting for communication or input does not. If rings dropped old spans, covers only the time
// that both still have. Both must be sorted by end.
Overlap compute_overlap(const std::vector<TraceSpan>& communication,
                        const std::vector<TraceSpan>& phases);

}  // namespace paceline
