#include "analysis/explain/counterfactual.h"

#include <fmt/format.h>

#include "analysis/study/comparison.h"
#include "analysis/study/switches.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// All that two runs must have in common to differ by the switch alone. Threads follow from what is
// run.
std::string key_but_for(const Run& run, const Switch& what) {
  std::string key = fmt::format("{} {} ", run.gpus, run.cpus_per_replica().value_or(0));
  add_to_key(key, run.kind);
  add_to_key(key, run.system);
  for (const auto& [name, value] : run.parameters.values()) {
    const Parameter& parameter = *find_parameter(name);
    if (!parameter.identity() || name == what.parameter || what.follows(parameter)) continue;
    if (parameter.role == Role::replication || parameter.role == Role::threads) continue;
    add_to_key(key, name);
    add_to_key(key, to_text(value));
  }
  return key;
}

}  // namespace

Counterfactuals::Counterfactuals(const Study& study) {
  for (const Switch& what : switches()) {
    Rows& rows = off_.emplace_back();
    for (const Row& row : study.rows) {
      if (is_off(row.first(), what)) rows[key_but_for(row.first(), what)].push_back(&row);
    }
  }
}

std::vector<Counterfactual> Counterfactuals::of(const Row& row, bool rates) const {
  std::vector<Counterfactual> found;
  if (is_switched_off(row.first())) return found;
  for (std::size_t i = 0; i < off_.size(); ++i) {
    if (off_[i].empty()) continue;
    const Switch& what = switches()[i];
    const auto others = off_[i].find(key_but_for(row.first(), what));
    if (others == off_[i].end()) continue;
    for (const Row* other : others->second) {
      found.push_back(
          {what.without, what.cost,
           judged(compute_ratio(row, *other, rates).estimate, find_weak_evidence(row, *other)),
           other});
    }
  }
  return found;
}

}  // namespace paceline
