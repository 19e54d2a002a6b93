// The runs that a study should have: STUDY/plan.json, written before the runs, so that missing
// records are noticed.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/facts/provenance.h"
#include "results/parameters.h"

namespace paceline {

struct StoreContent;

constexpr char kExpectedRunsFile[] = "plan.json";
constexpr char kSpecFile[] = "spec.json";  // beside it: the spec of the last sweep or submit

struct ExpectedRuns {
  std::string study, workload;
  int repeats = 1;
  std::vector<Point> points;                // the parameters given in the spec
  std::vector<ProgramFacts> programs = {};  // the user's own, as they were at that time
  std::string seen_at = {};                 // UTC, as a record's started_at
  // Folders of points with records that cannot be read: nobody knows whether these were run.
  std::set<std::string> unreadable = {};

  // Folders are named by the varied parameters, of all that a point has.
  bool is_unreadable(const Point& point) const;
};

// Replaces an older plan. Throws input if the folder cannot be written.
void write_expected_runs(const std::filesystem::path& study_folder, const ExpectedRuns& plan);

// The plans of the named studies, and of studies directly inside a named folder. Unreadable ones
// are added to `content`'s rejected records.
std::vector<ExpectedRuns> load_plans(const std::vector<std::filesystem::path>& studies,
                                     StoreContent& content);

// Parses the text of a plan, which may name what is gone. Throws input naming the file and the
// problem: also an axis that no version knew, and a point that cannot be laid out.
ExpectedRuns parse_expected_runs(const std::string& name, std::string_view text);

// Empty if the folder has no plan. Throws input naming the file and the problem.
std::optional<ExpectedRuns> read_expected_runs(const std::filesystem::path& study_folder);

}  // namespace paceline
