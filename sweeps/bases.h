// Whether the rows of a study will have a base, which their speed-up needs.
#pragma once

#include <string>
#include <vector>

#include "sweeps/expansion.h"

namespace paceline {

// A line for each reason for which points of several replicas have no point of one replica to be
// compared with: as the report matches them, by CPUs and all else that the spec varies but the
// amount of work. Points that cannot run here do not count. Empty: all have one, or need
// none, as there is one size.
std::vector<std::string> missing_bases(const std::vector<PlannedPoint>& points);

}  // namespace paceline
