// Gates that run points themselves: comparisons of two builds, and fresh runs of what did not pass.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analysis/gate/judge.h"
#include "analysis/gate/render.h"
#include "results/store.h"
#include "sweeps/expansion.h"
#include "sweeps/spec.h"

namespace paceline {

struct GateRuns {
  std::filesystem::path out;  // keeps the records of fresh runs; empty: deletes them at the end
  std::vector<std::string> set;
  std::string data;                               // empty: where they find it
  std::string baseline = "old", current = "new";  // what the sides of two builds are called
  int rounds = 5;
  // Runs undecided points again, round by round up to `max_rounds`, and judges after each.
  bool until_decided = false;
  int max_rounds = 40;
  double timeout_seconds = 0;
  bool control = false;  // runs the old build as a second side too, which should equal itself
};

// The result: a judgement, or the signal that interrupted it.
struct GateOutcome {
  Judgement judgement;
  int stopped_by = 0;
  std::filesystem::path kept = {};  // where the runs are, if some failed, or it was stopped
};

// Two builds of Paceline with a spec; or two commands of a program of the user's, with a spec of
// one such program, or without: their whole times are compared then.
struct GatePair {
  std::string old_program, new_program;  // paths, or command lines
  std::filesystem::path spec;            // may be empty
  bool has_commands = true;              // false: the spec's own, of --aa
};

// Runs the spec with both programs in interleaved rounds, judges, and measures again what did not
// pass. With `until_decided` all rounds count, from the first one on, and nothing is measured
// again: every look holds the error rate (judge.h). Throws usage if a program is not a paceline, or
// if `out` contains runs.
GateOutcome gate_pair(const GatePair& pair, const GateRuns& runs, const GateOptions& options);

// Measures again what did not pass, with both sides' programs. Throws usage if nothing can be run
// again (benchmarks).
GateOutcome confirm(const Side& baseline, const Side& current, Judgement first,
                    const std::filesystem::path& baseline_program,
                    const std::filesystem::path& current_program, const GateRuns& runs,
                    const GateOptions& options);

// Runs the same points with several programs in interleaved rounds, for a gate's fresh runs.

struct ProgramSide {
  std::string name;               // "old"
  std::filesystem::path program;  // an executable paceline
  std::vector<PlannedPoint> points;
  std::shared_ptr<Spec> spec = {};  // with the side's command of the user's program
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
  int rounds = 0;                   // completed
};

// Each round runs every point on every side, in shuffled order, in one session. A failed run leaves
// a record with the reason. Throws input if records cannot be written.
InterleavedRecords run_interleaved(const InterleavedRuns& plan);

// The program's version line, "paceline 0.1.0 ...". Throws usage if it is not a paceline.
std::string version_of_program(const std::filesystem::path& program, const std::string& option);
// The same; empty: it is not one.
std::string find_version(const std::filesystem::path& program);

// A gate as it was asked for: of stored studies, of fresh runs, or of stored ones confirmed by
// fresh ones.

struct GateRequest {
  std::vector<std::string> baseline, current;        // stored studies
  std::vector<std::string> ab;                       // old and new program or command, spec
  std::string aa;                                    // the spec of this program against itself
  std::string rerun, current_program;                // of stored studies: what makes fresh runs
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
