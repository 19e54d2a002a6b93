#include "analysis/study/control.h"

#include <fmt/format.h>

#include "analysis/study/point_names.h"

namespace paceline {

namespace {

double percent(double ratio) {
  return 100 * (ratio - 1);
}

}  // namespace

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
                                 percent(estimate.value));
  if (estimate.interval) {
    text += fmt::format(" [{:+.1f}, {:+.1f}]", percent(estimate.interval->low),
                        percent(estimate.interval->high));
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
