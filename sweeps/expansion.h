// From a spec to its points.
#pragma once

#include <string>
#include <vector>

#include "results/layout.h"
#include "sweeps/spec.h"

namespace paceline {

struct PlannedPoint {
  Point point;       // what varies over the study: its name and its folder; of a control, that too
  Point parameters;  // all that the spec says
  Layout layout;
};

struct Expansion {
  std::vector<PlannedPoint> points;  // in the spec's order, the last axis fastest, then `include`
  std::vector<std::string> notes;    // what was left out, and why: backends not built here
};

// What to do with a point whose backend or device is not built here.
enum class Unbuilt { leave_out, keep };

// `cores` is the value of that name in expressions: the cores that may be used here. Throws input
// with file and line for an empty product, two equal points, more than 100,000 combinations or
// 1,000,000 runs; usage for a layout that cannot be. `where` and `exclude` hold for included
// points too.
Expansion expand(const Spec& spec, int cores, Unbuilt unbuilt = Unbuilt::leave_out);

}  // namespace paceline
