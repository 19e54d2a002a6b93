// A prediction as a table and a plot. Each row and each series says whether it was measured.
#pragma once

#include <string>
#include <vector>

#include "analysis/plots/plot.h"
#include "analysis/predict/prediction.h"
#include "analysis/table/table.h"

namespace paceline {

// Columns for programs: kind (measured, predicted), gpus, nodes, fit_seconds or samples_per_second
// with its interval, speed_up and efficiency (against the smallest size that was run), predictor,
// held_out_error (of what is predicted, a share), held_out_gpus, beyond.
Table prediction_table(const Prediction& prediction);

// Seconds or rate over replicas on logarithmic axes: measured, predicted (dashed), ideal.
Plot prediction_plot(const Prediction& prediction);

}  // namespace paceline
