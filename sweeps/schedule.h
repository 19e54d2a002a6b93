// In which order the runs of a study go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline {

struct ScheduledRun {
  std::size_t point = 0;  // index into the expansion
  int repeat = 1;         // from 1; also its round, where runs are interleaved
  std::size_t side = 0;   // which of the programs makes it, where several are compared
};

// Interleaved: every round runs each point once, in an order shuffled from the seed and the round,
// so that drift of the machine falls on all points alike. Sequential: all repeats of a point, then
// the next.
std::vector<ScheduledRun> schedule(std::size_t points, int repeats, bool interleaved,
                                   std::uint64_t seed);

// Interleaved, and in each round every side runs a point right after the others did, in an order
// shuffled too, so that what the machine does falls on all sides alike.
std::vector<ScheduledRun> schedule_sides(std::size_t points, std::size_t sides, int rounds,
                                         std::uint64_t seed);

}  // namespace paceline
