// Compares studies of different dates, sessions or clusters: how the time of each point differs,
// with the gate's statistics. The session is the unit of replication.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/study/study.h"
#include "results/store.h"

namespace paceline {

struct ReportSide {
  std::string name;  // as the user named it
  StoreContent content;
  std::vector<Study> studies;  // made from it
  std::vector<ExpectedRuns> plans{};
};

// One row for each point that both have: the time of `second` over that of `first`, with its
// interval and what the interval covers. A row without valid runs on one side is a gap. Empty if
// they share no measured point.
std::optional<Section> compare_sides(const ReportSide& first, const ReportSide& second);

struct Sides {
  std::vector<ReportSide> sides;
  std::vector<Section> comparisons;  // the first side with measured runs against each of the others
  bool has_collectives = false;      // records of kind collective exist, and are excluded
};

// Each folder is a side; individually named records form one side together. Empty if fewer than two
// sides are named, or if one has no table. `anonymous` removes hosts, users, accounts and paths.
Sides load_sides(const std::vector<std::filesystem::path>& studies,
                 const std::vector<Selection>& only, bool anonymous = false);

}  // namespace paceline
