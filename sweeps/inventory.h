// What of a study is already there, and why each other run has to be made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "results/store.h"
#include "sweeps/expansion.h"
#include "sweeps/schedule.h"

namespace paceline {

// What a run would be, with all defaults filled in; the caller knows the workloads.
struct Resolved {
  Point parameters;       // every one
  std::string identity;   // of workload and parameters; empty: not known, those given are compared
  std::string data_hash;  // empty: not known, any will do
  std::string build;
};

constexpr char kNoRecord[] = "no record";

// elsewhere: its completed record is of another machine, and does not count here.
enum class RunState { done, missing, failed, changed, elsewhere };

struct RunStatus {
  ScheduledRun run;
  RunState state = RunState::missing;
  std::string why;     // "no record", "failed: rank 1 was killed", ...; a done run's record
  double seconds = 0;  // of a done run: set-up, fit and evaluation; for the ETA
  bool other_build = false;
  std::string other_machine = {};  // of a record that would make it done, were it of a like machine
};

// The machine of a completed record that does not count where the study is to run, as a text for
// people; empty: it counts.
using OtherMachine = std::function<std::string(const Record&)>;

// One status a scheduled run, in the schedule's order. A completed record of the same identity and
// data hash makes a run done; one of another build too, unless `new_build`. Records that failed,
// were cut short, or are of other parameters, data or machines leave it to be run again. `resolved`
// goes with `points`.
std::vector<RunStatus> take_inventory(const std::vector<PlannedPoint>& points,
                                      const std::vector<ScheduledRun>& runs,
                                      const StoreContent& store,
                                      const std::vector<Resolved>& resolved, bool new_build,
                                      const OtherMachine& other_machine = {});

}  // namespace paceline
