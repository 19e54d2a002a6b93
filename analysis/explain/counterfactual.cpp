#include "analysis/explain/counterfactual.h"

#include "analysis/study/comparison.h"
#include "analysis/study/switches.h"

namespace paceline {

namespace {

// The same point but for the switch. Threads follow from what is run.
bool equal_but_for(const Run& with, const Run& without, const Switch& what) {
  if (with.kind != without.kind || with.system != without.system || with.gpus != without.gpus ||
      with.cpus_per_replica() != without.cpus_per_replica()) {
    return false;
  }
  for (const Parameter& parameter : parameters()) {
    if (!parameter.identity() || parameter.name == what.parameter) continue;
    if (parameter.role == Role::replication || parameter.role == Role::threads) continue;
    if (what.follows(parameter)) continue;
    if (with.parameters.text(parameter.name) != without.parameters.text(parameter.name))
      return false;
  }
  return true;
}

}  // namespace

std::vector<Counterfactual> counterfactuals(const Study& study, const Row& row, bool rates) {
  std::vector<Counterfactual> found;
  if (is_switched_off(row.first())) return found;
  for (const Switch& what : switches()) {
    for (const Row& other : study.rows) {
      if (!is_off(other.first(), what) || !equal_but_for(row.first(), other.first(), what))
        continue;
      found.push_back({what.without, what.cost, ratio_of(row, other, rates), &other});
    }
  }
  return found;
}

}  // namespace paceline
