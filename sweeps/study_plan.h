// A spec, expanded and compared with what is on disk, for people and for programs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "sweeps/expansion.h"
#include "sweeps/inventory.h"
#include "sweeps/spec.h"

namespace paceline {

struct StudyPlan {
  Spec spec;
  Expansion expansion;
  std::vector<RunStatus> runs;
  std::vector<Rejected> rejected;  // records that cannot be used
  std::filesystem::path study;     // the folder of records
};

std::size_t runs_in_state(const StudyPlan& plan, RunState state);
std::size_t runs_to_make(const StudyPlan& plan);  // that are not done and can run here

// Of the runs to make that have a record of a machine unlike those on which they are to run: how
// many, a line a machine.
std::vector<std::string> other_machine_lines(const StudyPlan& plan);

// Of the runs to make; nothing while no run is done.
std::optional<double> estimated_seconds(const StudyPlan& plan);

std::size_t points_that_cannot_run(const StudyPlan& plan);

// Nobody reads 100,000 lines: more points than these are counted, unless all are asked for.
constexpr std::size_t kShownPoints = 100;
constexpr std::size_t kAllPoints = static_cast<std::size_t>(-1);

// The points as a table with what is done of each, why others are not, and the work left. Sentences
// have lines of at most `width` columns. Of more points than `most`, those that something is to be
// said of come first.
std::string plan_text(const StudyPlan& plan, std::size_t width = 300,
                      std::size_t most = kShownPoints);

// The same for programs: "points" with layout, parameters and why one cannot run here, "runs" with
// state and why, "notes", "ignored", "seconds_left" (null where unknown).
Json plan_json(const StudyPlan& plan);

// What is said before runs are made: notes, rows that will have no base, records ignored, and why
// each run is made where some are there already.
std::vector<std::string> resume_lines(const StudyPlan& plan);

}  // namespace paceline
