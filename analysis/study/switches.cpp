#include "analysis/study/switches.h"

#include <algorithm>

#include "engine/core/backend_stack.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

bool nothing_follows(const Parameter&) {
  return false;
}
bool follows_communication(const Parameter& parameter) {
  return parameter.name == "cpus_per_task";
}
bool follows_input(const Parameter& parameter) {
  return parameter.need == Requirement::encoded_images || parameter.name == "weights";
}

}  // namespace

const std::array<Switch, 4>& switches() {
  static const std::array<Switch, 4> table = {{
      {"backend", "null", "communication", "communication (backend null)", true,
       follows_communication},
      {"input", "synthetic", "input", "input (input synthetic)", true, follows_input},
      {"overlap", "false", "overlap", "overlap of communication and backward (overlap false)",
       false, nothing_follows},
      {"update", "false", "update", "the optimizer (update false)", true, nothing_follows},
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

bool is_switched_off(const Run& run) {
  return std::any_of(switches().begin(), switches().end(),
                     [&](const Switch& what) { return is_off(run, what); });
}

bool is_without_communication(const Run& run) {
  return is_off(run, switches().front());
}

std::vector<bool> spared_work(const Study& study) {
  std::vector<bool> spared(study.rows.size(), false);
  for (const Switch& what : switches()) {
    if (!what.spares_work) continue;
    std::vector<std::size_t> off;
    for (std::size_t i = 0; i < study.rows.size(); ++i) {
      if (is_off(study.rows[i].first(), what)) off.push_back(i);
    }
    if (off.size() == study.rows.size()) continue;  // none does it, so none is spared it
    for (const std::size_t i : off) spared[i] = true;
  }
  return spared;
}

}  // namespace paceline
