// Measures the cost of a component from runs in which it was switched off.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/row_facts.h"

namespace paceline {

struct Counterfactual {
  std::string without;       // "communication (backend null)"
  std::string cost;          // "communication", for programs
  Ratio speed_up;            // of the run without it, over the one with it
  const Row* row = nullptr;  // the one without it
};

// Rows of the study that equal `row` except for one switch: backend=null, input=synthetic,
// overlap=false, update=false. Empty if `row` itself has something switched off.
std::vector<Counterfactual> counterfactuals(const Study& study, const Row& row, bool rates);

}  // namespace paceline
