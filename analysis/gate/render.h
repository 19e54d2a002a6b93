// Renders a verdict for people and for programs. All formats have the same content.
#pragma once

#include <string>
#include <string_view>

#include "analysis/gate/judge.h"
#include "analysis/render/render.h"

namespace paceline {

// Names of the two sides ("baseline" and "current", or "old" and "new"), and their paths.
struct GateSides {
  std::string baseline = "baseline", current = "current";
  std::string baseline_place, current_place;
};

// The verdict, all checks of time, other checks that did not pass, then the notes.
std::string gate_text(const Judgement& judgement, const GateSides& sides, const TextStyle& style);
std::string gate_markdown(const Judgement& judgement, const GateSides& sides);
bool is_gate_markdown(std::string_view text);

// {"schema": 1, "verdict", "confirmed", "sequential", "rounds" (null unless it went on until it was
// decided), "baseline", "current", "checks": [{"subject", "quantity",
// "verdict", "evidence", "reason", "baseline", "current", "change", "change_low", "change_high",
// "threshold", "p", "p_adjusted", "baseline_runs", "current_runs", "worse_below_threshold",
// "busy_left_aside", "outlying_left_aside", "fresh", "first_change"}], "sees", "notes"}. Changes:
// positive is worse; shares of the baseline for time and loss.
std::string gate_json(const Judgement& judgement, const GateSides& sides);

// One test case per check, grouped by quantity. A regression is a failure and an undecided check an
// error, so that CI systems show both. The seconds of a check of time are those of a run of the
// current side.
std::string gate_junit(const Judgement& judgement, const GateSides& sides);
bool is_gate_junit(std::string_view text);

// Workflow commands of GitHub Actions, one per line: ::error for a regression, ::warning for an
// undecided check, ::notice for a pass.
std::string gate_annotations(const Judgement& judgement);

// For a build compared with itself: whether this machine is steady enough to detect changes of time
// at the thresholds, in one line. Empty if no check of time has an interval.
std::string steadiness_text(const Judgement& judgement);

}  // namespace paceline
