// Formats the state of a submitted study.
#pragma once

#include <string>
#include <vector>

#include "engine/core/json.h"
#include "slurm/study_view.h"

namespace paceline {

// "12 of 18 runs done, 2 running, 3 pending, 1 failed"
std::string phases_text(const std::vector<RunView>& runs);

// One line per shape with its jobs; below it one bar per point, with a character per repeat, and
// the reasons of failed runs; then the number of records made on other machines.
std::string status_text(const std::vector<RunView>& runs);

// "runs" with point, repeat, state, why, job; "done", "running", "pending", "failed", "unsent",
// "unknown"; "not_counted" with one sentence per machine.
Json status_json(const std::vector<RunView>& runs);

}  // namespace paceline
