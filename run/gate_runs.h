// Gates that run something: two builds side by side, and fresh runs of suspects.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/judge.h"

namespace paceline {

struct GateRuns {
  std::filesystem::path out;  // keeps the records of fresh runs; empty: they go at the end
  std::vector<std::string> set;
  int rounds = 5;
  double timeout_seconds = 0;
  bool control = false;  // the old build once more, as a side that has to look like itself
};

// What came of it: a judgement, or the signal that ended it.
struct GateOutcome {
  Judgement judgement;
  int stopped_by = 0;
};

// Runs the spec with both programs in interleaved rounds, judges, and makes fresh runs of what did
// not pass. Throws usage for a program that is none of ours or an `out` that holds runs already.
GateOutcome gate_builds(const std::filesystem::path& old_program,
                        const std::filesystem::path& new_program, const std::filesystem::path& spec,
                        const GateRuns& runs, const GateOptions& options);

// Fresh runs of what did not pass, of both sides' programs. Throws usage where there is nothing
// that could be run again (benchmarks).
GateOutcome confirm(const Side& baseline, const Side& current, Judgement first,
                    const std::filesystem::path& baseline_program,
                    const std::filesystem::path& current_program, const GateRuns& runs,
                    const GateOptions& options);

}  // namespace paceline
