// The A/A control of a study: a point that was run once more in each round, as if it were another
// one. How far it differs from itself is how far runs differ that do not differ in anything.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/comparison.h"
#include "analysis/study/contrast.h"
#include "analysis/study/study.h"

namespace paceline {

struct ControlCheck {
  std::string point;  // what it is called among the rows
  Ratio ratio;        // mean cost of the control over that of the point: 1 if all is well
  std::size_t of_control = 0, of_point = 0;  // runs, or where these are pooled sessions
  Doubt doubt;

  // Whether the control is slower or faster beyond the noise of the runs: never from fewer than
  // kFewestRuns.
  bool differs() const;
};

// Of every row that has controls.
std::vector<ControlCheck> controls_of(const Study& study, const Comparison& comparison);

// "A/A control: mpi, 1 replica differs from itself by +0.4 % [-0.9, +1.8] (5 runs each): smaller
// differences mean nothing here"
std::string control_line(const ControlCheck& control);

}  // namespace paceline
