// What each point lost of its efficiency, as one bar of parts.
#pragma once

#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/plots/plot.h"

namespace paceline {

// Points of several replicas that lost some by their means, in percent points. A part whose
// interval holds 0, or that has none, is drawn as noise: its cause is not claimed. None where no
// point has parts.
std::vector<Plot> loss_plots(const Explanation& explanation);

}  // namespace paceline
