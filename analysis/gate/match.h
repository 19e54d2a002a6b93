// Which points of two sides are the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/side.h"

namespace paceline {

struct Matches {
  std::vector<std::optional<std::size_t>> of_baseline;  // index of the current side's subject
  std::vector<std::string> notes;  // what has no partner and what differs, what is new
};

// Same workload and no identity parameter (the seed aside) that both sides have with unlike values;
// where several are, the one with fewest parameters that only one side has. Benchmarks go by name.
// With `one_spec` both sides ran the same spec, so that points go by name too, and what differs is
// the builds' defaults.
Matches match_subjects(const Side& baseline, const Side& current, bool one_spec = false);

}  // namespace paceline
