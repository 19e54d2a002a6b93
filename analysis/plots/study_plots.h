// The plots of a study: one file per plot. Each returns only plots for which there is data.
#pragma once

#include <string>
#include <vector>

#include "analysis/plots/plot.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

// Input of every plot function.
struct PlotSource {
  const Study& study;
  const Comparison& comparison;
  const std::vector<RowFacts>& facts;
  std::string title;  // the table's title
};

bool has_bars(const std::vector<PlotSeries>& all);  // some point has an interval
// A tic for each size that was run, except crowded ones.
std::vector<Tic> size_tics(const std::vector<PlotSeries>& series, bool logarithmic = false);

// All plots for which the study has data, in report order.
std::vector<Plot> study_plots(const PlotSource& source);

// One of them: a function in its own file, and its row in study_plots.cpp.
using PlotMaker = std::vector<Plot>(const PlotSource& source);

// Bus bandwidth over message size for records of kind collective, with the library's and a memory
// copy's where measured. Needs two sizes.
std::vector<Plot> bandwidth_plots(const std::vector<Record>& records);

}  // namespace paceline
