// Studies side by side: of another date, session or cluster. How the time of each point differs, by
// the gate's statistics: a session is the unit of replication.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/study/study.h"
#include "analysis/table/table.h"

namespace paceline {

struct ReportSide {
  std::string name;  // as the user named it
  StoreContent content;
  std::vector<Study> studies;  // made of it
  std::vector<ExpectedRuns> plans{};
};

// A row a point that both have: the time of `second` over that of `first`, with its interval and
// what this covers; a gap where no runs of one side count. Nothing where they have no measured
// point in common.
std::optional<Table> compare_sides(const ReportSide& first, const ReportSide& second);

struct Sides {
  std::vector<ReportSide> sides;
  std::vector<Table> comparisons;  // of the first with measured runs and each of the others
  bool has_collectives = false;    // records of kind collective, which are left out
};

// Each folder is a side; records that are named one by one are one together. Empty where fewer than
// two are named, or where one has no table of its own. `anonymous`: without hosts, users, accounts
// and paths.
Sides sides_of(const std::vector<std::filesystem::path>& studies,
               const std::vector<Selection>& only, bool anonymous = false);

}  // namespace paceline
