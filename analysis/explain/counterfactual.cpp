#include "analysis/explain/counterfactual.h"

#include <array>
#include <set>

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
  // What follows the switch: these may differ too.
  std::set<std::string, std::less<>> follow;
};

const std::array<Switch, 4>& switches() {
  static const std::array<Switch, 4> table = {{
      {"backend", "null", "communication", "communication (backend null)", {"cpus_per_task"}},
      {"input",
       "synthetic",
       "input",
       "input (input synthetic)",
       {"weights", "cache", "cache_type", "cache_mb", "parallel_reads", "read_buffer_kb",
        "on_bad_sample"}},
      {"overlap", "false", "overlap", "overlap of communication and backward (overlap false)", {}},
      {"update", "false", "update", "the optimizer (update false)", {}},
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
  static const std::set<std::string, std::less<>> kNever = {"seed", "compute_threads",
                                                            "input_threads", "comm_threads"};
  if (with.kind != without.kind || with.system != without.system || with.gpus != without.gpus ||
      with.cpus_per_replica() != without.cpus_per_replica()) {
    return false;
  }
  for (const Parameter& parameter : parameters()) {
    if (!parameter.identity || parameter.name == what.parameter) continue;
    if (kNever.contains(parameter.name) || what.follow.contains(parameter.name)) continue;
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
