// The samples of each step and rank beside a measured record (N.M.steps.gz), behind the facts of
// each rank where those are too many for the record (rank_lists.h).
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
  // In which every rank waited for communication: over steps, the least wait of any rank.
  double waited_by_all = 0;
};

// Of the steps after the first `warmup`. None where the record has no samples beside it, or they
// are not those that it names, cut short, or not of every rank in every step.
std::optional<StepSums> summed_steps(const Record& record, std::size_t warmup = 0);

// A part of such a file, which is as many parts as it was written in.
std::string gzip(std::string_view lines);

}  // namespace paceline
