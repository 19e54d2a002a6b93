// The order of the runs of a study.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline {

struct ScheduledRun {
  std::size_t point = 0;  // index into the expansion
  int repeat = 1;         // from 1; also its round if runs are interleaved
  std::size_t side = 0;   // index of the program, if several are compared
};

// Interleaved: each round runs every point once, in an order shuffled by seed and round, so that
// drift of the machine affects all points equally. Sequential: all repeats of a point, then the
// next point.
std::vector<ScheduledRun> schedule(std::size_t points, int repeats, bool interleaved,
                                   std::uint64_t seed);

// Interleaved. In each round, all sides run a point directly after each other, in shuffled order,
// so that disturbances affect all sides equally.
std::vector<ScheduledRun> schedule_sides(std::size_t points, std::size_t sides, int rounds,
                                         std::uint64_t seed);

}  // namespace paceline
