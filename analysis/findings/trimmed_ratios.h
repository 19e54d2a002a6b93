// Speed-ups by trimmed means, where an outlier makes the intervals of the others wide.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/row_facts.h"

namespace paceline {

// "without the fastest and the slowest runs of each row (trimmed means): 2 replicas: speed-up 2.00
// [1.95, 2.05]". Of speed-ups whose interval is at most half as wide so, where the runs of the row
// or of its base differ by more than `spread`. May be empty.
std::string trimmed_ratios_line(const Study& study, const Comparison& comparison,
                                const std::vector<RowFacts>& facts, double spread);

}  // namespace paceline
