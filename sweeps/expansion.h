// From a spec to its points.
#pragma once

#include <string>
#include <vector>

#include "results/layout.h"
#include "sweeps/spec.h"

namespace paceline {

struct PlannedPoint {
  Point point;       // what varies over the study: its name and its folder
  Point parameters;  // all that the spec says
  Layout layout;
};

struct Expansion {
  std::vector<PlannedPoint> points;  // in canonical order: axes in spec order, last one fastest
  std::vector<std::string> notes;    // what was left out, and why: backends not built here
};

// `cores` is the value of that name in expressions: the cores that may be used here. Throws input
// for an empty product, two equal points, more than 100,000 combinations, impossible layouts.
// A backend or device that is not built here is left out with a note.
Expansion expand(const Spec& spec, int cores);

}  // namespace paceline
