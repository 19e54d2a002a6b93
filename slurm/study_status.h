// Formats the state of a submitted study.
#pragma once

#include <string>
#include <vector>

#include "engine/core/json.h"
#include "slurm/study_view.h"
#include "sweeps/study_plan.h"

namespace paceline {

// "12 of 18 runs done, 2 running, 3 pending, 1 failed"
std::string phases_text(const std::vector<RunView>& runs);

// One line per shape with its jobs; below it one bar per point, with a character per repeat, and
// the reasons of failed runs; then the number of records made on other machines, and of runs not
// yet submitted. Lists about `most_points` points: failed ones first in each shape, then running
// ones. Counts the others.
std::string status_text(const std::vector<RunView>& runs, std::size_t most_points = kShownPoints);

// "runs" with point, repeat, state, why, job; "done", "running", "pending", "failed", "unsent",
// "unknown"; "not_counted" with one sentence per machine.
Json status_json(const std::vector<RunView>& runs);

}  // namespace paceline
