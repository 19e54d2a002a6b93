// Costs that can be switched off, by which runs show what a cost is: backend=null, input=synthetic,
// overlap=false, update=false.
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
  bool spares_work;                   // a run that has it off does less than training takes
  bool (*follows)(const Parameter&);  // may differ too
};

const std::array<Switch, 4>& switches();

bool is_off(const Run& run, const Switch& what);
bool is_switched_off(const Run& run);  // any of them

// Whether the replicas of a run train apart (backend null): none waits for another.
bool is_without_communication(const Run& run);

// A row each: whether its runs are spared work that runs of other rows do. Such a row is no faster
// way to train, and no base.
std::vector<bool> spared_work(const Study& study);

}  // namespace paceline
