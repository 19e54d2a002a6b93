// A study that goes on until the mean time of each point is known precisely: runs are spent where
// the interval is wide, none where it is narrow enough.
//
// The interval is anytime-valid (statistics/anytime.h), as somebody looks after every run. The
// records say so (RunFlags::sequential), and reports use such intervals.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "results/store.h"
#include "sweeps/study_plan.h"

namespace paceline {

struct TargetPrecision {
  double share = 0;       // half of the 95 % interval of the mean time, over the mean; 0: not asked
  int most = 30;          // repeats of a point
  double max_hours = 0;   // GPU-hours or core-hours of this call; 0: no limit
  bool in_waves = false;  // as many runs at once as a point is likely to need, for a queue
};

// What the runs of a point say so far.
struct PointPrecision {
  std::size_t counted = 0, done = 0;  // completed runs; counted: neither disturbed nor timeless
  std::size_t failed = 0;             // of this call
  std::optional<double> reached;      // as TargetPrecision::share; empty: no interval yet
  bool is_precise = false, cannot_be_precise = false;  // hopeless: no run of several counts
  std::size_t wanted = 0;                              // runs to make next
};

class UntilPrecise {
 public:
  // `plan` has its points; its spec.repeats are those that each point gets at least (3 or more).
  UntilPrecise(StudyPlan& plan, const TargetPrecision& precision)
      : plan_(&plan), precision_(precision) {}

  // The repeats that an inventory has to cover.
  int most_repeats() const { return precision_.most; }

  // Looks at the records, and returns the runs to make next, in order. `inventory` has a status for
  // each repeat of each point. None: all points are precise, or nothing more may be run.
  std::vector<RunStatus> next(const std::vector<RunStatus>& inventory, const StoreContent& store);

  // For the budget: asked before a run, told after it.
  bool is_affordable(const ScheduledRun& run) const;
  void took(const ScheduledRun& run, double seconds);

  // What was reached and what was not, and why, a line each.
  std::vector<std::string> lines() const;

 private:
  double hours(std::size_t point, double seconds) const;
  PointPrecision look_at(const std::vector<const RunStatus*>& runs,
                         const std::map<std::string, const Record*>& records) const;

  StudyPlan* plan_;
  TargetPrecision precision_;
  std::vector<PointPrecision> points_;
  std::set<std::pair<std::size_t, int>> tried_;  // in this call: point, repeat
  std::map<std::size_t, double> longest_;        // seconds of a run of a point
  double spent_ = 0;                             // hours of this call
  bool is_over_budget_ = false;
  std::size_t chosen_ = 0;  // runs of the last next()
};

// GPU-hours or core-hours, as the points' replicas are. Throws usage if the points are of both
// kinds, or of the other kind than `gpu_hours` says.
void check_budget_kind(const StudyPlan& plan, bool gpu_hours);

}  // namespace paceline
