#include "analysis/control.h"

#include <fmt/format.h>

#include "analysis/point_names.h"

namespace paceline {

namespace {

double percent(double ratio) {
  return 100 * (ratio - 1);
}

}  // namespace

bool ControlCheck::differs() const {
  const auto& interval = ratio.estimate.interval;
  return interval && ratio.estimate.count >= kFewestRuns &&
         (interval->low > 1 || interval->high < 1);
}

std::vector<ControlCheck> controls_of(const Study& study, const Comparison& comparison) {
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) rows.push_back(&row);
  std::vector<std::string> names;
  std::vector<ControlCheck> controls;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    if (study.rows[i].controls.empty()) continue;
    if (names.empty()) names = point_names(study, rows);
    Row again;
    again.runs = study.rows[i].controls;
    controls.push_back({names[i], ratio_of(again, study.rows[i], comparison.rates)});
  }
  return controls;
}

std::string control_line(const ControlCheck& control) {
  const Estimate& estimate = control.ratio.estimate;
  std::string text = fmt::format("A/A control: {} differs from itself by {:+.1f} %", control.point,
                                 percent(estimate.value));
  if (estimate.interval) {
    text += fmt::format(" [{:+.1f}, {:+.1f}]", percent(estimate.interval->low),
                        percent(estimate.interval->high));
  }
  text += fmt::format(" ({} runs each)", estimate.count);
  if (estimate.count < kFewestRuns || !estimate.interval) {
    return text + ": too few runs to judge by";
  }
  return text + (control.differs()
                     ? ", although nothing is unlike: find out why before you trust the rest"
                     : ": smaller differences mean nothing here");
}

}  // namespace paceline
