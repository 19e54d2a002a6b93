#include "analysis/plots/study_plots.h"

#include <iterator>

namespace paceline {

std::vector<Plot> study_plots(const PlotSource& source) {
  std::vector<Plot> all;
  for (const auto maker : {speed_up_plots, efficiency_plots, breakdown_plots, cpus_plots,
                           settings_plots, backend_plots, epoch_plots}) {
    std::vector<Plot> plots = maker(source);
    std::move(plots.begin(), plots.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace paceline
