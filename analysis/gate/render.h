// A judgement for people and for machines. All say the same.
#pragma once

#include <string>
#include <string_view>

#include "analysis/gate/judge.h"
#include "analysis/render/render.h"

namespace paceline {

// "baseline" and "current", or "old" and "new": what the two sides are called, and where they are.
struct GateSides {
  std::string baseline = "baseline", current = "current";
  std::string baseline_place, current_place;
};

// The verdict, every check of time and each other check that did not pass, then the notes.
std::string gate_text(const Judgement& judgement, const GateSides& sides, const TextStyle& style);
std::string gate_markdown(const Judgement& judgement, const GateSides& sides);
bool is_gate_markdown(std::string_view text);

// {"schema": 1, "verdict", "confirmed", "baseline", "current", "checks": [{"subject", "quantity",
// "verdict", "evidence", "reason", "baseline", "current", "change", "change_low", "change_high",
// "threshold", "p", "p_adjusted", "baseline_runs", "current_runs", "fresh", "first_change"}],
// "notes"}. Changes: positive is worse; shares of the baseline for time and loss.
std::string gate_json(const Judgement& judgement, const GateSides& sides);

// A test case a check, by quantity: a regression is a failure, an undecided one an error, so that
// systems that know only these two show both.
std::string gate_junit(const Judgement& judgement, const GateSides& sides);
bool is_gate_junit(std::string_view text);

// Workflow commands of GitHub Actions, a line each: ::error for a regression, ::warning for an
// undecided check, ::notice for a pass.
std::string gate_annotations(const Judgement& judgement);

// Of a build against itself: whether this machine is quiet enough to tell changes of time by the
// thresholds, in a line. Nothing where no check of time has an interval.
std::string quietness_text(const Judgement& judgement);

}  // namespace paceline
