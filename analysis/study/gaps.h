// Gaps: points that belong into a table but have no results. They are always shown.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study.h"
#include "results/expected_runs.h"

namespace paceline {

// Each gap is a row with one empty run, and its reason in Row::gap: points without a completed run
// ("failed", "timeout", ...); planned points that were not run ("not run") or whose records cannot
// be read ("unreadable"); and, without a plan, sizes that other series have and this one lacks
// between its own ("not run"). Unordered. `unfinished` are runs of this study.
std::vector<Row> find_gaps(const Study& study, const std::vector<Run>& unfinished,
                           const std::vector<ExpectedRuns>& plans);

// Without a plan: a sentence on sizes that only other series have, beyond the end of a series. May
// be empty.
std::string open_ends_note(const Study& study);

// A sentence on planned points without a table, because no run of their workload, precision or
// amount of work completed. May be empty.
std::string no_table_note(const std::vector<ExpectedRuns>& plans,
                          const std::vector<Study>& studies);

}  // namespace paceline
