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

// Speed-up over replicas: one line per series, error bars, a dashed ideal line. Needs a row with
// several replicas and a base. If a series has several rows of a size, draws the fastest.
std::vector<Plot> speed_up_plots(const PlotSource& source);
// Efficiency (speed-up / replicas) over replicas, against 100 %.
std::vector<Plot> efficiency_plots(const PlotSource& source);
// The mean step of each point, stacked by phase: seconds summed over ranks and runs / their steps.
std::vector<Plot> breakdown_plots(const PlotSource& source);
// Samples per joule over replicas against the base's; and, for equal work, energy over time. Needs
// two rows whose energies can be compared.
std::vector<Plot> energy_plots(const PlotSource& source);
// Points that differ in CPUs: seconds, coloured by how much slower they are than the best of their
// size. One plot per backend and system. Needs two different numbers of CPUs at one size.
std::vector<Plot> cpus_plots(const PlotSource& source);
// Time or rate over the values of each parameter in which the rows differ. One line for rows that
// are otherwise equal. Needs three values.
std::vector<Plot> settings_plots(const PlotSource& source);
// Samples per second and replica of backends that ran the same sizes with the same CPUs.
std::vector<Plot> backend_plots(const PlotSource& source);
// Seconds per epoch, for the fastest row of each size. Needs runs of at least two epochs.
std::vector<Plot> epoch_plots(const PlotSource& source);

// Bus bandwidth over message size for records of kind collective, with the library's and a memory
// copy's where measured. Needs two sizes.
std::vector<Plot> bandwidth_plots(const std::vector<Record>& records);

}  // namespace paceline
