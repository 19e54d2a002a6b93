// The samples of each step and rank beside a measured record (N.M.steps.gz).
#pragma once

#include <optional>

#include "results/record.h"

namespace paceline {

// Seconds of a run in which every rank waited for communication: the sum over steps of the least
// wait of any rank in that step. None where the record has no samples beside it, or they are not
// those that it names, cut short, or not of every rank in every step.
std::optional<double> waited_by_all(const Record& record);

}  // namespace paceline
