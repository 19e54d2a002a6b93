// Which rank held the others up, and in what: from the step times of all ranks.
//
// A rank's *work* is a step without its waits in communication: input, forward, backward and
// update. Its *excess* is its work beyond the median of the other ranks'. Ranks that are alike take
// turns at being the slowest, so one is called a straggler only where it was slower than that
// median in nine of ten equal stretches of the run (chance alone does so once in a hundred), and
// where the excess is at least 3 % of a step.
#pragma once

#include <optional>
#include <vector>

#include "engine/train/outcome.h"

namespace paceline {

inline constexpr std::size_t kStragglerStretches = 10;
inline constexpr std::size_t kStragglerLeastSteps = 20;  // fewer say nothing
inline constexpr double kStragglerLeastShare = 0.03;

// `ranks` have the same number of steps; the first `warmup` of them are left out.
std::optional<Straggler> find_straggler(const std::vector<RankTimes>& ranks, std::size_t warmup);

}  // namespace paceline
