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

// A step of a rank.
struct StepSeconds {
  double input = 0, forward = 0, backward = 0, communication = 0, update = 0, other = 0;
};

// The steps of each rank, after the first `warmup` ones. Empty in the same cases as summed_steps(),
// and if there are more than `most` of all ranks.
std::vector<std::vector<StepSeconds>> all_steps(const RunRecord& record, const std::string& where,
                                                std::size_t warmup, std::size_t most = 1'000'000);

// Sums over the steps after the first `warmup`. Empty if there are no samples, or they do not match
// the record, are cut short, or lack some rank or step.
std::optional<StepSums> summed_steps(const Record& record, std::size_t warmup = 0);

// A part of such a file, which is as many parts as it was written in.
std::string gzip(std::string_view lines);

}  // namespace paceline
