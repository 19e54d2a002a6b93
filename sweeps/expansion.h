// From a spec to its points.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "results/layout.h"
#include "sweeps/spec.h"

namespace paceline {

struct PlannedPoint {
  Point point;       // what varies over the study: its name and its folder; of a control, that too
  Point parameters;  // all that the spec says, and the CPUs of a task
  Layout layout;
  std::string cannot_run = {};  // why not on this machine; empty: nothing is known against it
};

struct Expansion {
  std::vector<PlannedPoint> points;  // in the spec's order, the last axis fastest, then `include`
  std::vector<std::string> notes;    // what cannot run here, why, and whether it was left out
};

// What to do with a point that cannot run here: its backend or device is not built, or the machine
// is too small for it.
enum class Unbuilt { leave_out, keep };

// Why a point cannot run on this machine; empty: it can.
using Hindrance = std::function<std::string(const PlannedPoint&)>;

// The machine that is to run the points.
struct TargetMachine {
  int cores = 1;             // the value of that name in expressions: those that may be used
  bool shares_cores = true;  // replicas of which the spec says no CPUs get a share of them, not one
  Hindrance hindrance = {};
};

// Points that say nothing of CPUs all get the same for a replica, those that let the largest of
// them fit (on GPUs, for a task): a speed-up needs a base of as many. Throws input with file and
// line for an empty product, two equal points, more than 100,000 combinations or 1,000,000 runs;
// usage for a layout that cannot be. `where` and `exclude` hold for included points too.
Expansion expand(const Spec& spec, const TargetMachine& machine,
                 Unbuilt unbuilt = Unbuilt::leave_out);
Expansion expand(const Spec& spec, int cores, Unbuilt unbuilt = Unbuilt::leave_out);

}  // namespace paceline
