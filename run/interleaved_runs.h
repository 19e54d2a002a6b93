// The same points run by several programs, side by side: what a gate's fresh runs are.
#pragma once

#include <cstdint>
#include <filesystem>
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

struct InterleavedRuns {
  std::string name = "gate", workload;
  std::vector<ProgramSide> sides;  // with as many points each
  int rounds = 5;
  std::uint64_t seed = 0;
  double timeout_seconds = 0;
  std::filesystem::path folder;  // FOLDER/<side> gets a side's records
};

struct InterleavedRecords {
  std::vector<StoreContent> sides;  // what each one's folder holds now
  int stopped_by = 0;               // a signal that ended it early; 0: none
};

// Each round runs every point on every side, in a shuffled order, in one session. A run that fails
// leaves a record that says why. Throws input where records cannot be written.
InterleavedRecords run_interleaved(const InterleavedRuns& plan);

// "paceline 0.1.0 ...", as the program says of itself. Throws usage where it is none of ours.
std::string version_of_program(const std::filesystem::path& program, const std::string& option);

}  // namespace paceline
