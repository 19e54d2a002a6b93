#include "analysis/plots/study_plots.h"

#include <algorithm>
#include <iterator>

namespace paceline {

bool has_bars(const std::vector<PlotSeries>& all) {
  return std::any_of(all.begin(), all.end(), [](const PlotSeries& series) {
    return std::any_of(series.points.begin(), series.points.end(),
                       [](const PlotPoint& point) { return point.interval.has_value(); });
  });
}

std::vector<Plot> study_plots(const PlotSource& source) {
  std::vector<Plot> all;
  for (const auto maker : {speed_up_plots, efficiency_plots, breakdown_plots, energy_plots,
                           cpus_plots, settings_plots, backend_plots, epoch_plots}) {
    std::vector<Plot> plots = maker(source);
    std::move(plots.begin(), plots.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace paceline
