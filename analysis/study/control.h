// The A/A control of a study: one point runs a second time in each round, as if it were another
// point. The difference between the two is run-to-run noise.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/comparison.h"
#include "analysis/study/contrast.h"
#include "analysis/study/study.h"

namespace paceline {

struct ControlCheck {
  std::string point;  // its name among the rows
  Ratio ratio;        // mean cost of the control over that of the point; ideally 1
  std::size_t of_control = 0, of_point = 0;  // numbers of runs, or of sessions if pooled
  WeakEvidence doubt;

  // Whether the control is slower or faster beyond the noise. Never true for fewer than
  // kFewestRuns.
  bool differs() const;
};

// One for each row that has controls.
std::vector<ControlCheck> check_controls(const Study& study, const Comparison& comparison);

// "A/A control: mpi, 1 replica differs from itself by +0.4 % [-0.9, +1.8] (5 runs each): smaller
// differences mean nothing here"
std::string control_line(const ControlCheck& control);

}  // namespace paceline
