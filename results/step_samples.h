// Samples of each step and rank, stored next to a measured record (N.M.steps.gz), after the facts
// of each rank if those are too large for the record (rank_lists.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/record.h"

namespace paceline {

struct RankSeconds {
  double input = 0, compute = 0, communication = 0, other = 0;
};

struct StepSums {
  std::vector<RankSeconds> ranks;
  // Time in which every rank waited for communication: the smallest wait of any rank, summed over
  // steps.
  double waited_by_all = 0;
};

// Sums over the steps after the first `warmup`. Empty if there are no samples, or they do not match
// the record, are cut short, or lack some rank or step.
std::optional<StepSums> summed_steps(const Record& record, std::size_t warmup = 0);

// A part of such a file, which is as many parts as it was written in.
std::string gzip(std::string_view lines);

}  // namespace paceline
