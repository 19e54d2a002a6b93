// Studies side by side: of another date, session or cluster. How the time of each point differs, by
// the gate's statistics: a session is the unit of replication.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/study.h"
#include "analysis/table.h"

namespace paceline {

struct ReportSide {
  std::string name;  // as the user named it
  StoreContent content;
  std::vector<Study> studies;  // made of it
};

// A row a point that both have: the time of `second` over that of `first`, with its interval and
// what this covers. Nothing where they have no measured point in common.
std::optional<Table> compare_sides(const ReportSide& first, const ReportSide& second);

}  // namespace paceline
