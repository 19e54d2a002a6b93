// Checks that the rows of a study will have a base for their speed-up.
#pragma once

#include <string>
#include <vector>

#include "sweeps/expansion.h"

namespace paceline {

// One line for each reason why points with several replicas lack a one-replica point to compare
// with. Matches like the report: by CPUs and everything that the spec varies except the amount of
// work. Ignores points that the machine cannot run. Empty: all have a base, or there is only one
// size.
std::vector<std::string> missing_bases(const std::vector<PlannedPoint>& points);

}  // namespace paceline
