// A world of many ranks on this machine: rank 0 alone in the calling process, as on a node of its
// own, a victim in a process of its own, all others as threads of light processes.
#pragma once

#include <string>
#include <vector>

namespace paceline {

struct WorldFigures {
  // From the first rank's start until the last rank had ended it.
  double joined = 0, met = 0, agreed = 0, differed = 0;
  double heard = 0;  // after the victim was killed, until the last survivor knew
  double rank0_mb = 0;
  int rank0_descriptors = 0;
  std::vector<std::string> faults;  // "rank 7: ...": what a rank did or heard wrongly
};

// Starts the ranks, lets them meet, agree, disagree, and kills the victim. Call it before this
// process has threads.
WorldFigures run_world(int ranks);

// The most memory that this process ever had.
double peak_mb();

}  // namespace paceline
