// Costs that can be switched off, so that runs with and without them measure the cost:
// backend=null, input=synthetic, overlap=false, update=false.
#pragma once

#include <array>
#include <string>
#include <vector>

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

}  // namespace paceline
