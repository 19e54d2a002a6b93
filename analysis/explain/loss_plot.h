// Plots each point's loss of efficiency as one stacked bar.
#pragma once

#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/plots/plot.h"

namespace paceline {

// Points with a base, in percentage points; parts that are gains are drawn left of 0, so the
// lengths make the number behind the bar. A part whose interval contains 0, or that has no
// interval, is drawn as noise. Empty if no point has a part that would be seen.
std::vector<Plot> loss_plots(const Explanation& explanation);

}  // namespace paceline
