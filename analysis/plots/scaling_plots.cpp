// Speed-up and efficiency over replicas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/plots/study_plots.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostReadableSeries = 8;
constexpr int kMostOnALinearAxis = 32;  // replicas

const Estimate& speed_up_estimate(const RowFacts& row) {
  return row.speed_up->ratio.estimate;
}

// The value of each run, whose mean is `y` but for rounding. Empty for a single run.
std::vector<double> run_values(const RowFacts& row, bool rates, double y) {
  const std::optional<Estimate>& mean = rates ? row.samples_per_second : row.fit_seconds;
  std::vector<double> values;
  for (const Run& run : row.row->runs) {
    const std::optional<double>& value = rates ? run.samples_per_second : run.fit_seconds();
    if (value && mean) values.push_back(y * (rates ? *value / mean->value : mean->value / *value));
  }
  if (values.size() < 2) values.clear();
  return values;
}

// `per_replica`: divided by the replicas, in percent.
PlotSeries make_series(const ScalingSeries& series, const std::string& otherwise, bool rates,
                       bool per_replica) {
  PlotSeries line{.name = series.name.empty() ? otherwise : series.name,
                  .machine = series.machine()};
  for (const SizeGroup& group : series.groups) {
    const RowFacts* best = *std::max_element(
        group.rows.begin(), group.rows.end(), [](const RowFacts* a, const RowFacts* b) {
          return speed_up_estimate(*a).value < speed_up_estimate(*b).value;
        });
    const double scale = per_replica ? 100.0 / group.gpus : 1;
    const Estimate shown =
        transformed(speed_up_estimate(*best), [&](double ratio) { return ratio * scale; });
    PlotPoint point{static_cast<double>(group.gpus), shown.value, shown.interval};
    point.ringed = best->is_barred();
    point.runs = run_values(*best, rates, *point.y);
    line.points.push_back(point);
  }
  for (const int gpus : series.gaps) {
    line.points.push_back({static_cast<double>(gpus), std::nullopt, std::nullopt});
  }
  std::ranges::stable_sort(line.points, {}, &PlotPoint::x);
  return line;
}

// "; no result: 4, 8"
std::string gaps_text(const std::vector<ScalingSeries>& all) {
  std::set<int> sizes;
  for (const ScalingSeries& series : all) sizes.insert(series.gaps.begin(), series.gaps.end());
  std::vector<std::string> texts = mapped(sizes, [](int gpus) { return std::to_string(gpus); });
  return texts.empty() ? "" : "; no result: " + join(texts, ", ");
}

bool has_dots(const std::vector<PlotSeries>& all) {
  return std::ranges::any_of(all, [](const PlotSeries& series) {
    return std::ranges::any_of(series.points, [](const auto& it) { return !it.runs.empty(); });
  });
}

std::vector<Plot> make_plots(const PlotSource& source, bool per_replica) {
  std::vector<ScalingSeries> all_series =
      make_scaling_series(source.study, source.comparison, source.facts, true);
  if (all_series.size() > kMostReadableSeries) {
    all_series = make_scaling_series(source.study, source.comparison, source.facts, false);
  }
  if (all_series.empty()) return {};
  Lines lines;
  int most = 1;
  std::set<int> bases;
  for (const ScalingSeries& series : all_series) {
    for (const RowFacts* row : series.groups.front().rows) {
      bases.insert(source.study.rows[row->speed_up->base].first()->layout.gpus);
    }
    lines.series.push_back(make_series(series, source.facts.front().run()->kind,
                                       source.comparison.rates, per_replica));
    most = std::max(
        {most, series.groups.back().gpus, static_cast<int>(lines.series.back().points.back().x)});
  }
  lines.log_x = most > kMostOnALinearAxis;
  if (lines.log_x && !per_replica) lines.log_y = 2;
  lines.x_tics = size_tics(lines.series, lines.log_x);
  lines.aside = has_bars(lines.series) && lines.series.size() > 1;
  const double base = *bases.begin(), end = most;
  const double at_base = per_replica ? 100 : 1, at_end = per_replica ? 100 : end / base;
  // Speed-ups over bases of different sizes have no ideal in common.
  if (per_replica || bases.size() == 1) {
    lines.ideal = PlotSeries{"ideal", {{base, at_base, {}}, {end, at_end, {}}}};
  }
  lines.highest_y = 1.5 * at_end;
  Plot plot{.name = per_replica ? "efficiency" : kSpeedUpPlot,
            .title = (per_replica ? "Efficiency: " : "Speed-up: ") + source.title};
  plot.subtitle =
      fmt::format("{}ratio of {}, base {}",
                  !per_replica                ? ""
                  : bases == std::set<int>{1} ? "speed-up / replicas: "
                                              : "speed-up / ideal speed-up: ",
                  source.comparison.rates ? source.study.unit.long_rate() : "fit seconds",
                  source.comparison.base.text());
  if (has_bars(lines.series)) plot.subtitle += "; bars: 95 % intervals";
  if (has_dots(lines.series)) plot.subtitle += "; dots: runs";
  plot.x_label = source.study.replicas_are_cores ? "replicas (groups of CPU cores)" : "GPUs";
  plot.x_label += gaps_text(all_series);
  plot.y_label = per_replica ? "efficiency (%)" : "speed-up";
  plot.body = std::move(lines);
  return {plot};
}

}  // namespace

// The ends, then the sizes that were run, then others, each where there is room; gnuplot's own
// choice is not whole.
std::vector<Tic> size_tics(const std::vector<PlotSeries>& series, bool logarithmic) {
  std::set<int> sizes;
  for (const PlotSeries& each : series) {
    for (const PlotPoint& point : each.points) sizes.insert(static_cast<int>(point.x));
  }
  if (sizes.empty()) return {};
  const int least = *sizes.begin(), most = *sizes.rbegin();
  std::vector<int> wanted = {least, most};
  wanted.insert(wanted.end(), sizes.begin(), sizes.end());
  if (!logarithmic && most <= 16) {
    for (int size = least + 1; size < most; ++size) wanted.push_back(size);
  }
  std::set<int> taken;
  for (const int size : wanted) {
    const bool crowded = std::ranges::any_of(taken, [&](int other) {
      return logarithmic ? std::max(size, other) < 1.3 * std::min(size, other)
                         : std::abs(size - other) < std::max(1, most / 20);
    });
    if (!crowded) taken.insert(size);
  }
  return mapped(taken, [](int at) { return Tic{static_cast<double>(at), std::to_string(at)}; });
}

// Speed-up over replicas: one line per series, error bars, a dashed ideal line. Needs a row with
// several replicas and a base. If a series has several rows of a size, draws the fastest.
std::vector<Plot> speed_up_plots(const PlotSource& source) {
  return make_plots(source, false);
}

// Efficiency (speed-up / replicas) over replicas, against 100 %.
std::vector<Plot> efficiency_plots(const PlotSource& source) {
  return make_plots(source, true);
}

}  // namespace paceline
