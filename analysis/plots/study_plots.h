// The pictures of a study: one maker a file, each giving only plots that the data can fill.
#pragma once

#include <string>
#include <vector>

#include "analysis/plots/plot.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

// What every maker is given.
struct PlotSource {
  const Study& study;
  const Comparison& comparison;
  const std::vector<RowFacts>& facts;
  std::string title;  // of the table
};

bool has_bars(const std::vector<PlotSeries>& all);  // some point has an interval

// All that the study fills, in the order of a report.
std::vector<Plot> study_plots(const PlotSource& source);

// Speed-up over replicas, a line a series, error bars, a dashed ideal line. Needs a row of several
// replicas with a base. Where a series has several rows of a size the fastest is drawn.
std::vector<Plot> speed_up_plots(const PlotSource& source);
// The same over the replicas: speed-up / replicas, against 100 %.
std::vector<Plot> efficiency_plots(const PlotSource& source);
// The mean step of each point, stacked by phases: seconds over ranks and runs / their steps.
std::vector<Plot> breakdown_plots(const PlotSource& source);
// Points of unlike CPUs: seconds, coloured by how much slower than the best of their size. One a
// backend and system; needs two numbers of CPUs at one size.
std::vector<Plot> cpus_plots(const PlotSource& source);
// Time or rate over the values of each parameter that the rows differ in, a line for those that are
// equal otherwise. Needs three values.
std::vector<Plot> settings_plots(const PlotSource& source);
// Samples a second and replica of backends that ran the same sizes with the same CPUs.
std::vector<Plot> backend_plots(const PlotSource& source);
// Seconds of each epoch, of the fastest row of each size. Needs runs of two epochs.
std::vector<Plot> epoch_plots(const PlotSource& source);

// Bus bandwidth of records of kind collective by message size, with the library's and a copy's
// where they were measured. Needs two sizes.
std::vector<Plot> bandwidth_plots(const std::vector<Record>& records);

}  // namespace paceline
