// Points that a table should have and has not: rows without results, never silently absent.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study.h"
#include "results/expected_runs.h"

namespace paceline {

// Rows of one empty run, with the reason in Row::gap: points of which no run completed
// ("failed", "timeout", ...), points that a plan names and nobody ran ("not run"), and, where there
// is no plan, sizes between others of the same series that other series have ("not run"). In no
// order. `unfinished` are runs of this study.
std::vector<Row> find_gaps(const Study& study, const std::vector<Run>& unfinished,
                           const std::vector<ExpectedRuns>& plans);

// Where there is no plan: sizes that others have, at the end of a series. A sentence, or nothing.
std::string open_ends_note(const Study& study);

// Planned points for which there is no table, as no run of their workload, precision or amount of
// work completed. A sentence, or nothing.
std::string no_table_note(const std::vector<ExpectedRuns>& plans,
                          const std::vector<Study>& studies);

}  // namespace paceline
