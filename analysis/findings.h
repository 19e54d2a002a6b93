// What the numbers of a table say, in sentences.
#pragma once

#include <string>
#include <vector>

#include "analysis/ladder.h"

namespace paceline {

// A line a ladder (best: the fastest rows; matched: the range over CPUs), what its Karp-Flatt
// fraction does as replicas are added, what a published page leaves out, and how far the A/A
// control differs from itself.
std::vector<std::string> findings(const Study& study, const Comparison& comparison,
                                  const std::vector<RowFacts>& facts);

// "mpi: speed-up 1.69 / 2.26 for 2, 3 replicas, efficiency 85 / 75 %, Karp-Flatt 0.181 / 0.165":
// ranges where a size has several rows.
std::string ladder_line(const Ladder& ladder, const Comparison& comparison);

// What the Karp-Flatt fraction of a ladder does as replicas are added, in a sentence; empty where
// two sizes do not have one.
std::string trend_line(const Ladder& ladder);

}  // namespace paceline
