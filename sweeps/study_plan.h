// An expanded spec, compared with the records on disk.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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
  std::vector<Rejected> rejected;  // unusable records
  std::filesystem::path study;     // the folder of records
};

std::size_t runs_in_state(const StudyPlan& plan, RunState state);
std::size_t runs_to_make(const StudyPlan& plan);  // not done, and possible here

// For the runs to make that have a record of another machine: their number, one line per machine.
std::vector<std::string> other_machine_lines(const StudyPlan& plan);

// "note: ..." and "warning: ...", but for Expansion::notes: what is not seen from here, rows
// without a base, records ignored, other machines.
void add_plan_notes(const StudyPlan& plan, std::vector<std::string>& lines);

// "3 of the done runs are of another build; --new-build runs them again". Empty: none is.
std::string other_build_line(const StudyPlan& plan);

std::size_t points_that_cannot_run(const StudyPlan& plan);

// A text lists so many points and counts the others, unless all are asked for.
constexpr std::size_t kShownPoints = 100;
constexpr std::size_t kAllPoints = static_cast<std::size_t>(-1);

// A table of the points and their done runs, the reasons for missing ones, and the remaining work.
// Sentences are wrapped at `width` columns. Of more points than `most`, lists those with a remark
// first.
std::string plan_text(const StudyPlan& plan, std::size_t width = 300,
                      std::size_t most = kShownPoints);

// The same for programs: "points" with layout, parameters and why one cannot run here; "runs" with
// state and reason; "notes", "ignored", "seconds_left" (null if unknown).
Json plan_json(const StudyPlan& plan);

// Shown before runs are made: notes, rows without a base, ignored records, and, if some records
// exist, why each run is made.
std::vector<std::string> resume_lines(const StudyPlan& plan);

// Says why repeats of a point are not done: a reason once, whatever number of repeats have it.

struct RepeatReason {
  int repeat = 1;
  std::string why;
  std::string element = {};  // its own number within `why` ("12_3"), which makes no other reason
};

// "repeats 1 to 4: steps was 200, is 300; repeat 6: rank 1 was killed", in the order of repeats,
// with `colon` behind the numbers.
std::string summarize_reasons(std::vector<RepeatReason> reasons, std::string_view colon = ": ");

}  // namespace paceline
