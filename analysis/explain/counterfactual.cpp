#include "analysis/explain/counterfactual.h"

#include <array>

#include "analysis/comparison.h"
#include "engine/core/backend_stack.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

struct Switch {
  const char* parameter;
  const char* off;
  const char* cost;
  const char* without;
  bool (*follows)(const Parameter&);  // may differ too
};

bool nothing_follows(const Parameter&) {
  return false;
}
bool follows_communication(const Parameter& parameter) {
  return parameter.name == "cpus_per_task";
}
bool follows_input(const Parameter& parameter) {
  return parameter.need == Requirement::encoded_images || parameter.name == "weights";
}

const std::array<Switch, 4>& switches() {
  static const std::array<Switch, 4> table = {{
      {"backend", "null", "communication", "communication (backend null)", follows_communication},
      {"input", "synthetic", "input", "input (input synthetic)", follows_input},
      {"overlap", "false", "overlap", "overlap of communication and backward (overlap false)",
       nothing_follows},
      {"update", "false", "update", "the optimizer (update false)", nothing_follows},
  }};
  return table;
}

bool is_off(const Run& run, const Switch& what) {
  const auto value = run.parameters.text(what.parameter);
  if (std::string(what.parameter) != "backend" || !value) return value == what.off;
  try {
    return split_stack(*value).between == what.off;
  } catch (const Error&) {
    return false;  // a name of another build's
  }
}

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

bool is_switched_off(const Run& run) {
  for (const Switch& what : switches()) {
    if (is_off(run, what)) return true;
  }
  return false;
}

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
