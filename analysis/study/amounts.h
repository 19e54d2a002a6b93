// What adds up over runs: hours, joules, operations. A mean is a sum over a sum, never a mean of
// ratios, nor a geometric one as of times and rates: five runs of a budget take five times the
// mean.
#pragma once

#include <cstddef>
#include <optional>

#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

// The sum of `above` over that of `below`, over the runs that know both. Empty if none does.
std::optional<Estimate> ratio_of_sums(const Row& row, const RunFact& above, const RunFact& below);
// The sum of `amount` over the number of runs that know it.
std::optional<Estimate> mean_amount(const Row& row, const RunFact& amount);

// That of `row` over that of `base`, where every run knows them. Paired as speed-ups are.
Ratio compare_sums(const Row& base, const Row& row, const RunFact& above, const RunFact& below);
Ratio compare_amounts(const Row& base, const Row& row, const RunFact& amount);

std::size_t runs_with(const Row& row, const RunFact& fact);

}  // namespace paceline
