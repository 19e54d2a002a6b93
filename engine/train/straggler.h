// Finds the rank that delayed the others, and its slow phase, from the step times of all ranks.
//
// A rank's *work* is a step without its waits for communication: input, forward, backward and
// update. Its *excess* is its work minus the median of the other ranks' work. Equal ranks take
// turns at being slowest. So a rank is a straggler only if it was slower than that median in nine
// of ten equal stretches of the run (by chance, once in a hundred runs) and its excess is at least
// 3 % of a step.
#pragma once

#include <optional>
#include <vector>

#include "engine/train/outcome.h"

namespace paceline {

inline constexpr std::size_t kStragglerStretches = 10;
inline constexpr std::size_t kStragglerLeastSteps = 20;  // fewer steps are not judged
inline constexpr double kStragglerLeastShare = 0.03;

// All ranks have the same number of steps. Ignores the first `warmup` steps.
std::optional<Straggler> find_straggler(const std::vector<RankTimes>& ranks, std::size_t warmup);

}  // namespace paceline
