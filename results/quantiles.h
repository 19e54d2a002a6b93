// Quantiles of a run's samples.
#pragma once

#include <vector>

#include "results/run_record.h"

namespace paceline {

// Linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996, the default of R
// and NumPy). `sorted` is not empty, `share` is 0 to 1.
double quantile(const std::vector<double>& sorted, double share);

double median(std::vector<double> values);  // of at least one

// Of the steps of one rank, in seconds, of which there is at least one.
StepQuantiles step_quantiles(std::vector<double> seconds);

}  // namespace paceline
