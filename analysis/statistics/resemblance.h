// How much neighbouring sessions resemble each other: the correlation of an autoregressive series.
#pragma once

#include <span>
#include <vector>

#include "analysis/statistics/stretches.h"

namespace paceline {

// From the variances of differences of neighbours and of next but one, whose ratio is 1 + r: shifts
// and drifts hardly affect it.
double resemblance_from_differences(const ScaledSeries& series);

// From what levels leave, one list per level, corrected for the means that were taken out.
double resemblance_from_residuals(const std::vector<std::vector<double>>& levels);

// The estimate and so many of its standard errors.
double plausible_resemblance(double estimate, std::size_t sessions, double errors);

// Of the squared t of two means of `before` and `after` sessions in a row, against independent
// sessions: the means vary more, and the sessions about them less.
double resemblance_inflation(double resemblance, std::size_t before, std::size_t after);

// What the standard deviation may be (90 %, one-sided) as a multiple of its estimate.
double plausible_noise(double degrees_of_freedom);

}  // namespace paceline
