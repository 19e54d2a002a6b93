// Costs that can be switched off, so that runs with and without them measure the cost:
// backend=null, input=synthetic, overlap=false, update=false.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analysis/study/comparison.h"
#include "analysis/study/contrast.h"
#include "analysis/study/study.h"

namespace paceline {

struct Switch {
  const char* parameter;
  const char* off;
  const char* cost;
  const char* without;
  bool spares_work;                   // switched off, the run does less work than real training
  bool (*follows)(const Parameter&);  // parameters that may differ too
};

const std::array<Switch, 4>& switches();

bool is_off(const Run& run, const Switch& what);
bool is_switched_off(const Run& run);  // any of the switches

// Whether the replicas of a run train independently (backend null): none waits for another.
bool is_without_communication(const Run& run);

// For each row, whether its runs skip work that the runs of other rows do. Such a row is not a
// faster way to train, and cannot be a base.
std::vector<bool> spared_work(const Study& study);

// The A/A control of a study: one point runs a second time in each round, as if it were another
// point. The difference between the two is run-to-run noise.

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
