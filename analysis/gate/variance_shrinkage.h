// What many checks together know of the noise of each.
#pragma once

#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

// Moves the standard error of each difference towards what is usual among them, and adds the
// degrees of freedom that this is worth: little where their spreads differ by more than chance,
// much where they are alike. Smyth, "Linear models and empirical Bayes methods for assessing
// differential expression", Stat. Appl. Genet. Mol. Biol. 3(1), 2004: variances s^2 with d degrees
// of freedom come from a scaled inverse chi-square with d0 and s0^2, found from the mean and
// variance of log s^2; the moderated variance is (d0 s0^2 + d s^2) / (d0 + d).
//
// Fewer than 4 differences, and such without any spread, are left as they are.
void moderate(const std::vector<Difference*>& differences);

}  // namespace paceline
