// Where a submitted study stands, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "engine/core/json.h"
#include "slurm/study_view.h"
#include "sweeps/study_plan.h"

namespace paceline {

// "12 of 18 runs done, 2 running, 3 pending, 1 failed"
std::string phases_text(const std::vector<RunView>& runs);

// A line a shape with its jobs; below it a bar a point, a character a repeat, and why each run that
// failed did; last, how many have a record of another machine than the jobs' nodes, and how many
// were not sent. Of about so many points there is a line, of each shape first those that failed,
// then those that run; the others are counted.
std::string status_text(const std::vector<RunView>& runs, std::size_t most_points = kShownPoints);

// "runs" with point, repeat, state, why, job; "done", "running", "pending", "failed", "unsent",
// "unknown", "not_counted" with a sentence a machine.
Json status_json(const std::vector<RunView>& runs);

}  // namespace paceline
