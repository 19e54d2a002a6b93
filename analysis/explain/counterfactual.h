// Measures the cost of a component from runs in which it was switched off.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/study/contrast.h"
#include "analysis/study/row_facts.h"

namespace paceline {

struct Counterfactual {
  std::string without;       // "communication (backend null)"
  std::string cost;          // "communication", for programs
  Judged speed_up;           // of the run without it, over the one with it
  const Row* row = nullptr;  // the one without it
};

// The rows of a study with a cost switched off: backend=null, input=synthetic, overlap=false,
// update=false. Points into the study.
class Counterfactuals {
 public:
  explicit Counterfactuals(const Study& study);

  // Those that equal `row` except for one switch. Empty if `row` itself has something switched off.
  std::vector<Counterfactual> of(const Row& row, bool rates) const;

 private:
  using Rows = std::unordered_map<std::string, std::vector<const Row*>>;
  std::vector<Rows> off_;  // one per switch; the key is everything that must be equal
};

}  // namespace paceline
