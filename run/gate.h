// A gate as it was asked for: of stored studies, of fresh runs, or of stored ones confirmed by
// fresh ones.
#pragma once

#include <string>
#include <vector>

#include "analysis/gate/render.h"
#include "run/gate_runs.h"

namespace paceline {

struct GateRequest {
  std::vector<std::string> baseline, current;        // stored studies
  std::vector<std::string> ab;                       // old program, new program, spec
  std::string aa;                                    // the spec of this program against itself
  std::string rerun, current_program;                // of stored studies: what makes fresh runs
  std::string data;                                  // of fresh runs; empty: where they find it
  bool force = false;                                // machines may differ
  bool has_rounds = false, has_most_rounds = false;  // runs.rounds, runs.max_rounds were given
  GateRuns runs;
  GateOptions options;

  bool is_stored() const { return !baseline.empty() || !current.empty(); }
};

// Throws usage, with the option, for what contradicts or misses something.
void check_request(const GateRequest& request);

// Judges, and makes the fresh runs. Throws usage or input.
GateOutcome run_gate(const GateRequest& request);

// The names of both sides, and where they are.
GateSides make_sides(const GateRequest& request);

// The verdict; for a build against itself also the thresholds that its noise allows.
Document make_document(const GateRequest& request, const Judgement& judgement);

}  // namespace paceline
