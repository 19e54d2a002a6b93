#include "analysis/study/switches.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/study/labels.h"
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

double percent_above_one(double ratio) {
  return 100 * (ratio - 1);
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
  const auto value = run->parameters.text(what.parameter);
  if (std::string(what.parameter) != "backend" || !value) return value == what.off;
  try {
    return split_stack(*value).between == what.off;
  } catch (const Error&) {
    return false;  // a name of another build's
  }
}

bool is_switched_off(const Run& run) {
  return std::ranges::any_of(switches(), [&](const Switch& what) { return is_off(run, what); });
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

bool ControlCheck::differs() const {
  const auto& interval = ratio.estimate.interval;
  return interval && !doubt && (lies_above(*interval, 1) || lies_below(*interval, 1));
}

std::vector<ControlCheck> check_controls(const Study& study, const Comparison& comparison) {
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) rows.push_back(&row);
  std::vector<std::string> names;
  std::vector<ControlCheck> controls;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    if (study.rows[i].controls.empty()) continue;
    if (names.empty()) names = point_names(study, rows);
    Row again;
    again.runs = study.rows[i].controls;
    again.pooled = study.rows[i].pooled;
    controls.push_back({names[i], compute_ratio(again, study.rows[i], comparison.rates),
                        units_in(again), units_in(study.rows[i]),
                        find_weak_evidence(again, study.rows[i])});
  }
  return controls;
}

std::string control_line(const ControlCheck& control) {
  const Estimate& estimate = control.ratio.estimate;
  std::string text = fmt::format("A/A control: {} differs from itself by {:+.1f} %", control.point,
                                 percent_above_one(estimate.value));
  if (estimate.interval) {
    text += fmt::format(" [{:+.1f}, {:+.1f}]", percent_above_one(estimate.interval->low),
                        percent_above_one(estimate.interval->high));
  }
  const char* units = control.doubt.pooled ? "sessions" : "runs";
  text += control.of_control == control.of_point
              ? fmt::format(" ({} {} each)", control.of_point, units)
              : fmt::format(" ({} {}, and {} of the control)", control.of_point, units,
                            control.of_control);
  if (control.doubt.disturbed) return text + ": the point has only disturbed runs to judge by";
  if (control.doubt) return text + fmt::format(": too few {} to judge by", units);
  return text + (control.differs()
                     ? ", although nothing differs: find out why before you trust the rest"
                     : ": smaller differences mean nothing here");
}

}  // namespace paceline
