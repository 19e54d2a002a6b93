// Runs the same points with several programs in interleaved rounds, for a gate's fresh runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "results/store.h"
#include "sweeps/expansion.h"
#include "sweeps/spec.h"

namespace paceline {

struct ProgramSide {
  std::string name;               // "old"
  std::filesystem::path program;  // an executable paceline
  std::vector<PlannedPoint> points;
};

// Looks at all records so far, after a number of rounds. Returns the indices of the points that the
// next round runs; none: no more rounds. `line` prints a line.
using NextRound =
    std::function<std::set<std::size_t>(const std::vector<StoreContent>& sides, int rounds,
                                        const std::function<void(const std::string&)>& line)>;

struct InterleavedRuns {
  std::string name = "gate", workload;
  std::vector<ProgramSide> sides;  // all with the same number of points
  int rounds = 5;
  NextRound next = {};  // asked after these rounds, and after each further one; may be empty
  std::uint64_t seed = 0;
  double timeout_seconds = 0;
  std::filesystem::path folder;  // FOLDER/<side> has a side's records
};

struct InterleavedRecords {
  std::vector<StoreContent> sides;  // all records in each side's folder
  int stopped_by = 0;               // the signal that interrupted it; 0: none
  int rounds = 0;                   // made
};

// Each round runs every point on every side, in shuffled order, in one session. A failed run leaves
// a record with the reason. Throws input if records cannot be written.
InterleavedRecords run_interleaved(const InterleavedRuns& plan);

// The program's version line, "paceline 0.1.0 ...". Throws usage if it is not a paceline.
std::string version_of_program(const std::filesystem::path& program, const std::string& option);

}  // namespace paceline
