// Energy efficiency over replicas, and energy over time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/plots/study_plots.h"
#include "analysis/study/cost.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::string series_name(const ScalingSeries& series, const PlotSource& source) {
  return series.name.empty() ? source.facts.front().run()->kind : series.name;
}

// The row of a size with the most samples per joule.
const RowFacts* most_efficient(const SizeGroup& group) {
  const RowFacts* best = nullptr;
  for (const RowFacts* row : group.rows) {
    if (!row->energy_efficiency) continue;
    if (!best || row->energy_efficiency->value > best->energy_efficiency->value) best = row;
  }
  return best;
}

PlotSeries efficiency_series(const ScalingSeries& series, const std::string& name) {
  PlotSeries line{.name = name, .machine = series.machine()};
  for (const SizeGroup& group : series.groups) {
    const RowFacts* row = most_efficient(group);
    if (!row) continue;
    const Estimate shown =
        transformed(*row->energy_efficiency, [](double share) { return 100 * share; });
    line.points.push_back({static_cast<double>(group.gpus), shown.value, shown.interval});
  }
  return line;
}

// Every row of a series that has an energy; comparable ones only, as those of the efficiency are.
PlotSeries time_series(const ScalingSeries& series, const std::string& name) {
  PlotSeries line{.name = name, .machine = series.machine()};
  for (const SizeGroup& group : series.groups) {
    for (const RowFacts* row : group.rows) {
      const auto joules = mean_amount(*row->row, energy_joules);
      if (!row->energy_efficiency || !row->fit_seconds || !joules) continue;
      const Estimate shown = transformed(*joules, [](double each) { return each / kWattHour; });
      line.points.push_back({row->fit_seconds->value, shown.value, shown.interval});
      line.points.back().label = std::to_string(group.gpus);
    }
  }
  std::ranges::stable_sort(line.points, {}, &PlotPoint::x);
  return line;
}

// Rings the Pareto front: no other point takes less time and less energy.
void ring_front(std::vector<PlotSeries>& all) {
  std::vector<PlotPoint*> points;
  for (PlotSeries& series : all) {
    for (PlotPoint& point : series.points) points.push_back(&point);
  }
  std::ranges::stable_sort(points, {}, &PlotPoint::x);
  double least = std::numeric_limits<double>::infinity();
  for (PlotPoint* point : points) {
    point->ringed = *point->y < least;
    least = std::min(least, *point->y);
  }
}

// Points of several series that lie on one another need one label.
void drop_equal_labels(std::vector<PlotSeries>& all) {
  constexpr double kNear = 0.05;
  const auto is_near = [](double a, double b) { return std::abs(a / b - 1) < kNear; };
  std::vector<const PlotPoint*> labelled;
  for (PlotSeries& series : all) {
    for (PlotPoint& point : series.points) {
      const bool is_known = std::ranges::any_of(labelled, [&](const PlotPoint* other) {
        return other->label == point.label && is_near(other->x, point.x) &&
               is_near(*other->y, *point.y);
      });
      if (is_known) point.label.clear();
      labelled.push_back(&point);
    }
  }
}

std::size_t count_points(const std::vector<PlotSeries>& all) {
  return summed(all, [](const PlotSeries& series) { return series.points.size(); });
}

}  // namespace

// Samples per joule over replicas against the base's; and, for equal work, energy over time. Needs
// two rows whose energies can be compared.
std::vector<Plot> energy_plots(const PlotSource& source) {
  constexpr std::size_t kFewest = 2;
  Lines efficiency, times;
  double most = 1;
  for (const ScalingSeries& series :
       make_scaling_series(source.study, source.comparison, source.facts, true)) {
    const std::string name = series_name(series, source);
    PlotSeries by_size = efficiency_series(series, name), by_time = time_series(series, name);
    if (by_size.points.size() < kFewest) continue;
    most = std::max(most, by_size.points.back().x);
    efficiency.series.push_back(std::move(by_size));
    times.series.push_back(std::move(by_time));
  }
  if (count_points(efficiency.series) < kFewest) return {};
  const std::string what = source.study.replicas_are_cores ? "replicas" : "GPUs";
  efficiency.ideal = PlotSeries{"as the base", {{1, 100, {}}, {most, 100, {}}}};
  efficiency.x_tics = size_tics(efficiency.series);
  efficiency.aside = efficiency.series.size() > 1;
  Plot over_replicas{.name = "energy_efficiency", .title = "Energy efficiency: " + source.title};
  over_replicas.subtitle =
      source.study.unit.name + " per joule over the base's, base " + source.comparison.base.text();
  if (has_bars(efficiency.series)) over_replicas.subtitle += "; bars: 95 % intervals";
  over_replicas.x_label =
      source.study.replicas_are_cores ? "replicas (groups of CPU cores)" : "GPUs";
  over_replicas.y_label = "energy efficiency (%)";
  over_replicas.body = std::move(efficiency);
  std::vector<Plot> plots = {over_replicas};
  if (source.comparison.rates) return plots;  // unlike work has no common energy
  ring_front(times.series);
  drop_equal_labels(times.series);
  times.ring_title = "Pareto front";
  Plot over_time{.name = "energy_time", .title = "Energy and time: " + source.title};
  over_time.subtitle = "numbers: " + what + "; Pareto front of the means";
  if (has_bars(times.series)) over_time.subtitle += "; bars: 95 % intervals";
  over_time.x_label = "fit seconds";
  over_time.y_label = "energy (Wh)";
  over_time.body = std::move(times);
  plots.push_back(over_time);
  return plots;
}

}  // namespace paceline
