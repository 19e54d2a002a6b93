// Gates that make runs: comparisons of two builds, and fresh runs of suspects.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/judge.h"

namespace paceline {

struct GateRuns {
  std::filesystem::path out;  // keeps the records of fresh runs; empty: deletes them at the end
  std::vector<std::string> set;
  int rounds = 5;
  // Goes on in rounds of what is undecided, up to `max_rounds`, and looks after each.
  bool until_decided = false;
  int max_rounds = 40;
  double timeout_seconds = 0;
  bool control = false;  // runs the old build as a second side too, which should equal itself
};

// The result: a judgement, or the signal that interrupted it.
struct GateOutcome {
  Judgement judgement;
  int stopped_by = 0;
};

// Runs the spec with both programs in interleaved rounds, judges, and measures again what did not
// pass. With `until_decided` all rounds count, from the first one on, and nothing is measured
// again: every look holds the error rate (judge.h). Throws usage if a program is not a paceline, or
// if `out` contains runs.
GateOutcome gate_builds(const std::filesystem::path& old_program,
                        const std::filesystem::path& new_program, const std::filesystem::path& spec,
                        const GateRuns& runs, const GateOptions& options);

// Measures again what did not pass, with both sides' programs. Throws usage if nothing can be run
// again (benchmarks).
GateOutcome confirm(const Side& baseline, const Side& current, Judgement first,
                    const std::filesystem::path& baseline_program,
                    const std::filesystem::path& current_program, const GateRuns& runs,
                    const GateOptions& options);

}  // namespace paceline
