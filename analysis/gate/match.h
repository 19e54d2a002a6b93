// Matches the points of two sides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/side.h"

namespace paceline {

struct Matches {
  std::vector<std::optional<std::size_t>> of_baseline;  // index of the current side's subject
  std::vector<std::string> notes;                       // unmatched, changed and new points
};

// Points match if they have the same workload and no identity parameter (except the seed) with
// different values on the two sides. Among several matches, the one with the fewest one-sided
// parameters wins. Benchmarks match by name. With `one_spec` both sides ran the same spec: points
// then match by name too, and differences are due to the builds' defaults.
Matches match_subjects(const Side& baseline, const Side& current, bool one_spec = false);

}  // namespace paceline
