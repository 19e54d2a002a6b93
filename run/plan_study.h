// Shared by the verbs on a study: resolves its points and reads its records.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/core/output.h"
#include "engine/input/formats/source.h"
#include "run/resolve.h"
#include "run/until_precise.h"
#include "sweeps/runner.h"
#include "sweeps/study_plan.h"

namespace paceline {

bool engine_is_here();

// Why a point cannot run alone on this machine: cores, GPUs, backends that need GPUs, nodes. Empty:
// it can, or this build lacks the engine. Ignores what is not built.
std::string reason_not_runnable(const PlannedPoint& planned);

// A study, and command-line changes of its spec.
struct StudyOptions {
  std::string spec, results, data;
  std::vector<std::string> set;
  int repeats = 0;  // 0: from the spec
  bool control = false, new_build = false;
  std::string until_precision;  // "2%"; empty: as many repeats as the spec says
  int max_repeats = 30;
};

// Reads --until-precision; share 0: not given. Then the spec's repeats become the first ones, at
// least 3, and its runs are marked sequential.
TargetPrecision read_target_precision(const StudyOptions& options, Spec& spec);

// `root` is --data; empty: not given. Throws usage if none of the points reads a data set.
void check_data_is_read(const std::string& root, const std::string& workload,
                        const std::vector<PlannedPoint>& points);
// Also throws input if it has no folder for the workload's data set.
void check_data_root(const std::string& root, const std::string& workload,
                     const std::vector<PlannedPoint>& points);

// If the data set is not on this machine: refuse, treat all records as made with other data, or
// accept all records (a login node need not see the compute nodes' data).
enum class AbsentData { refused, unlike_any, like_any };

// One entry per point. With unlike_any, a user's program that is absent is named, too. If the data
// set is absent, passes the error, with `data_fix` as its cure, to
// `not_here`, or else to the user. Throws usage or input naming a point that cannot be resolved.
std::vector<Resolved> resolve_points(const StudyPlan& plan, AbsentData absent,
                                     std::string* not_here = nullptr,
                                     const std::string& data_fix = kFindDataFix);

// Fills in the plan's runs and unusable records, of spec.repeats or of `repeats`. Returns the
// usable ones. `other_machine` decides which of them were made on another machine than the runs to
// make.
StoreContent look_at_store(StudyPlan& plan, const std::vector<Resolved>& resolved, bool new_build,
                           const std::function<OtherMachine(const StoreContent&)>& place,
                           int repeats = 0);

// For runs on this machine.
OtherMachine unlike_this_machine(const StudyPlan& plan);

// Stores the expected points in the study's folder, for its reports, and the spec.
void save_expected_runs(const StudyPlan& plan);

// Describes records that are lost in a damaged data set.

struct LostSummary {
  std::int64_t records = 0;         // of places with a known number
  std::vector<std::string> places;  // the first few
};

LostSummary summarize(const std::vector<LostRecords>& lost);

// Runs the missing runs of a study on this machine.

struct SweepOptions : StudyOptions {
  double timeout = 0;                            // seconds of a run; 0: from the spec
  double max_gpu_hours = 0, max_core_hours = 0;  // with until_precision; 0: no limit
  bool dry_run = false;                          // what is not built here can still be planned
};

class Sweep {
 public:
  // Reads the spec and resolves its points. Throws usage or input.
  explicit Sweep(const SweepOptions& options);

  // Compares with the records. `plan` then has its runs.
  StoreContent look_at(int repeats = 0);
  const StudyPlan& plan() const { return plan_; }

  // Makes what is missing, and says on the screen what it does and what precision was reached.
  RunnerResult run(Screen& screen);

 private:
  SweepOptions options_;
  StudyPlan plan_;
  TargetPrecision precision_;
  std::vector<Resolved> resolved_;
};

}  // namespace paceline
