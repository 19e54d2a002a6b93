// Variance shrinkage: many checks together improve the variance estimate of each.
#pragma once

#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

// Shrinks the standard error of each difference towards the typical one, and adds the degrees of
// freedom gained: few if their variances differ by more than chance, many if they are similar.
// Smyth, "Linear models and empirical Bayes methods for assessing differential expression", Stat.
// Appl. Genet. Mol. Biol. 3(1), 2004: variances s^2 with d degrees of freedom come from a scaled
// inverse chi-square with d0 and s0^2, estimated from the mean and variance of log s^2. The
// moderated variance is (d0 s0^2 + d s^2) / (d0 + d).
//
// Fewer than 4 differences, and differences without any variance, are not changed.
void moderate(const std::vector<Difference*>& differences);

}  // namespace paceline
