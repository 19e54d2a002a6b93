#include "analysis/plots/study_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "analysis/study/labels.h"
#include "engine/core/text.h"

namespace paceline {

bool has_bars(const std::vector<PlotSeries>& all) {
  return std::ranges::any_of(all, [](const PlotSeries& series) {
    return std::ranges::any_of(series.points,
                               [](const PlotPoint& point) { return point.interval.has_value(); });
  });
}

PlotMaker speed_up_plots, efficiency_plots, breakdown_plots, energy_plots, cpus_plots,
    settings_plots, backend_plots, epoch_plots;

std::vector<Plot> study_plots(const PlotSource& source) {
  std::vector<Plot> all;
  for (const auto maker : {speed_up_plots, efficiency_plots, breakdown_plots, energy_plots,
                           cpus_plots, settings_plots, backend_plots, epoch_plots}) {
    std::ranges::move(maker(source), std::back_inserter(all));
  }
  return all;
}

// What a setting brings: the time over its values, all else being equal.

namespace {

constexpr std::size_t kMostSeries = 8, kFewestPoints = 3;
constexpr double kMostTimesOnALinearAxis = 8;  // the largest value over the smallest

using AxisValue = std::pair<double, std::string>;  // by size; words by their place

// The values of one axis, by size where all are numbers.
std::vector<AxisValue> list_values(const PlotSource& source, const std::string& axis) {
  std::vector<std::string> texts;
  for (const RowFacts& row : source.facts) {
    const auto text = row.run()->parameters.text(axis);
    if (text && std::ranges::find(texts, *text) == texts.end()) texts.push_back(*text);
  }
  std::vector<AxisValue> values;
  for (const std::string& text : texts) {
    const auto number = to_real(text);
    if (!number) {
      values.clear();
      break;
    }
    values.emplace_back(*number, text);
  }
  if (values.empty()) {
    for (const std::string& text : texts) values.emplace_back(values.size() + 1.0, text);
  }
  std::ranges::sort(values);
  return values;
}

bool are_places(const std::vector<AxisValue>& values) {
  return std::ranges::any_of(values, [](const AxisValue& value) { return !to_real(value.second); });
}

// A line for rows that differ in the axis alone.
std::vector<PlotSeries> series_over(const PlotSource& source, const std::string& axis,
                                    const std::vector<AxisValue>& values) {
  Study others = source.study;
  std::erase(others.axes, axis);
  const auto names = point_names(others, mapped(source.facts, &RowFacts::row));
  std::map<std::string, PlotSeries> lines;
  for (std::size_t i = 0; i < source.facts.size(); ++i) {
    const RowFacts& row = source.facts[i];
    const auto text = row.run()->parameters.text(axis);
    const auto measure =
        source.comparison.rates ? source.study.unit.shown(row.samples_per_second) : row.fit_seconds;
    const auto value =
        std::ranges::find_if(values, [&](const AxisValue& each) { return text == each.second; });
    if (!measure || value == values.end()) continue;
    PlotSeries& line = lines[names[i]];
    line.name = names[i];
    line.machine = row.run().system;
    line.points.push_back({value->first, measure->value, measure->interval});
  }
  std::vector<PlotSeries> series;
  for (auto& [name, line] : lines) {
    if (line.points.size() < kFewestPoints) continue;
    std::ranges::sort(line.points, {}, &PlotPoint::x);
    series.push_back(std::move(line));
  }
  return series;
}

}  // namespace

// Time or rate over the values of each parameter in which the rows differ. One line for rows that
// are otherwise equal. Needs three values.
std::vector<Plot> settings_plots(const PlotSource& source) {
  std::vector<Plot> plots;
  for (const std::string& axis : source.study.axes) {
    const std::vector<AxisValue> values = list_values(source, axis);
    if (values.size() < kFewestPoints) continue;
    Lines lines{.series = series_over(source, axis, values)};
    if (lines.series.empty()) continue;
    const std::size_t left_out = lines.series.size() - std::min(kMostSeries, lines.series.size());
    lines.series.resize(lines.series.size() - left_out);
    const double least = values.front().first, most = values.back().first;
    lines.log_x = !are_places(values) && least > 0 && most > kMostTimesOnALinearAxis * least;
    for (const auto& [at, text] : values) lines.x_tics.push_back({at, text});
    const bool bars = has_bars(lines.series);
    lines.aside = bars && lines.series.size() > 1;
    const std::string what =
        source.comparison.rates ? source.study.unit.long_rate() : "fit seconds";
    plots.push_back({.name = "setting-" + axis,
                     .title = "Settings: " + source.title,
                     .subtitle = fmt::format(
                         "{} over {}, the rest being equal{}{}", what, axis,
                         bars ? "; bars: 95 % intervals" : "",
                         left_out > 0 ? fmt::format("; {} more lines are left out", left_out) : ""),
                     .x_label = axis,
                     .y_label = what,
                     .body = std::move(lines)});
  }
  return plots;
}

}  // namespace paceline
