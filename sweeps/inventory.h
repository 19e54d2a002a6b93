// Determines which runs of a study exist, and why the others must be made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "results/store.h"
#include "sweeps/expansion.h"
#include "sweeps/schedule.h"

namespace paceline {

// A run with all defaults filled in. The caller knows the workloads.
struct Resolved {
  Point parameters;       // all of them
  std::string identity;   // of workload and parameters; empty: unknown, compare the given ones
  std::string data_hash;  // empty: unknown, any matches
  std::string build;
  std::optional<ProgramFacts> program = {};  // as it is now
};

constexpr char kNoRecord[] = "no record";

// elsewhere: its completed record is from another machine, which does not count here.
enum class RunState { done, missing, failed, changed, elsewhere };

struct RunStatus {
  ScheduledRun run;
  RunState state = RunState::missing;
  std::string why;     // "no record", "failed: rank 1 was killed", ...; for a done run its record
  double seconds = 0;  // of a done run: set-up, fit and evaluation; for the ETA
  bool other_build = false;
  // Machine of a record that would complete it on a matching machine.
  std::string other_machine = {};
};

// The machine of a completed record if that does not count where the study will run, as text.
// Empty: it counts.
using OtherMachine = std::function<std::string(const Record&)>;

// One status per scheduled run, in schedule order. A completed record with the same identity and
// data hash makes a run done; with `new_build` it must also be of this build. Failed or truncated
// records, and those with other parameters, data or machines, do not. `resolved` corresponds to
// `points`.
std::vector<RunStatus> take_inventory(const std::vector<PlannedPoint>& points,
                                      const std::vector<ScheduledRun>& runs,
                                      const StoreContent& store,
                                      const std::vector<Resolved>& resolved, bool new_build,
                                      const OtherMachine& other_machine = {});

}  // namespace paceline
