// What the verbs on a whole study share: its points resolved, and its records looked at.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sweeps/study_plan.h"

namespace paceline {

bool engine_is_here();

// Why a point cannot run on this machine as it is now, alone: cores, GPUs, backends that need GPUs,
// nodes. Empty: it can, or this build has no engine to know it. What is not built is not looked at.
std::string hindrance_here(const PlannedPoint& planned);

// Which study, and what of its spec is changed on the command line.
struct StudyOptions {
  std::string spec, results = "results/local", data;
  std::vector<std::string> set;
  int repeats = 0;  // 0: the spec's
  bool control = false, new_build = false;
};

// Throws input unless the workload's data set has its folder in `root`, which --data names.
void check_data_root(const std::string& workload, const std::string& root);

// What to do where the data set is not on this machine: refuse, take its records for those of other
// data, or take them for its own (a login node need not see what the compute nodes read).
enum class AbsentData { refused, unlike_any, like_any };

// One a point. `not_here`, where there is one, is told what says that the data set is absent, else
// the user is. Throws usage or input naming the point that cannot be run.
std::vector<Resolved> resolve_points(const StudyPlan& plan, AbsentData absent,
                                     std::string* not_here = nullptr);

// Fills in the plan's runs and the records that cannot be used. Returns those that can. The caller
// says, from all of these, which are of another machine than the runs to make.
StoreContent look_at_store(StudyPlan& plan, const std::vector<Resolved>& resolved, bool new_build,
                           const std::function<OtherMachine(const StoreContent&)>& place);

// For runs that are made here.
OtherMachine unlike_this_machine(const StudyPlan& plan);

// Leaves in the study's folder which points it should have, for its reports.
void leave_wanted(const StudyPlan& plan);

}  // namespace paceline
