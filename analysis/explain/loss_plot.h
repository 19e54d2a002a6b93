// Plots each point's loss of efficiency as one stacked bar.
#pragma once

#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/plots/plot.h"

namespace paceline {

// Points with several replicas whose mean lost efficiency, in percentage points. A part whose
// interval contains 0, or that has no interval, is drawn as noise. Empty if no point has parts.
std::vector<Plot> loss_plots(const Explanation& explanation);

}  // namespace paceline
