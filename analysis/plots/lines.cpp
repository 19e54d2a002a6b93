#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/plots/script.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostLineName = 60;

struct Span {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool has_bars(const PlotSeries& series) {
  return std::ranges::any_of(series.points,
                             [](const PlotPoint& point) { return point.interval.has_value(); });
}

Span x_range(const Lines& lines) {
  Span range;
  for (const PlotSeries& series : lines.series) {
    for (const PlotPoint& point : series.points) range.add(point.x);
  }
  return range;
}

Span y_range(const Lines& lines) {
  Span range;
  const auto add = [&](const PlotSeries& series) {
    for (const PlotPoint& point : series.points) {
      if (!point.y) continue;
      range.add(*point.y);
      if (point.interval) range.add(point.interval->high);
      if (point.interval) range.add(point.interval->low);
      for (const double run : point.runs) range.add(run);
    }
  };
  for (const PlotSeries& series : lines.series) add(series);
  if (lines.ideal) add(*lines.ideal);
  if (lines.highest_y) range.high = std::min(range.high, *lines.highest_y);
  return range;
}

// By a hundredth of the axis, where there is a bar that another could cover.
double shifted(const Lines& lines, const Span& range, std::size_t index, const PlotPoint& point) {
  const double x = point.x;
  if (!lines.aside || !point.interval) return x;
  const double steps =
      static_cast<double>(index) - (static_cast<double>(lines.series.size()) - 1) / 2;
  if (lines.log_x) return x * std::pow(range.high / range.low, 0.008 * steps);
  return x + 0.01 * (range.high - range.low) * steps;
}

// A blank line breaks the line.
std::string data_block(const Lines& lines, const Span& range, std::size_t index) {
  std::string block = fmt::format("$series{} << END\n", index);
  for (const PlotPoint& point : lines.series[index].points) {
    if (!point.y) {
      block += '\n';
      continue;
    }
    if (point.begins_line) block += '\n';
    const Interval bar = point.interval.value_or(Interval{*point.y, *point.y});
    block += fmt::format("{} {} {} {}\n", shifted(lines, range, index, point), *point.y, bar.low,
                         bar.high);
  }
  return block + "END\n";
}

bool has_dots(const PlotSeries& series) {
  return std::ranges::any_of(series.points,
                             [](const PlotPoint& point) { return !point.runs.empty(); });
}

std::string dots_block(const Lines& lines, const Span& range, std::size_t index) {
  std::string block = fmt::format("$runs{} << END\n", index);
  for (const PlotPoint& point : lines.series[index].points) {
    for (const double run : point.runs) {
      block += fmt::format("{} {}\n", shifted(lines, range, index, point), run);
    }
  }
  return block + "END\n";
}

bool has_rings(const PlotSeries& series) {
  return std::ranges::any_of(series.points, [](const PlotPoint& point) { return point.ringed; });
}

std::string rings_block(const Lines& lines, const Span& range, std::size_t index) {
  std::string block = fmt::format("$rings{} << END\n", index);
  for (const PlotPoint& point : lines.series[index].points) {
    if (!point.ringed || !point.y) continue;
    block += fmt::format("{} {}\n", shifted(lines, range, index, point), *point.y);
  }
  return block + "END\n";
}

bool has_labels(const PlotSeries& series) {
  return std::ranges::any_of(series.points,
                             [](const PlotPoint& point) { return !point.label.empty(); });
}

std::string labels_block(const Lines& lines, const Span& range, std::size_t index) {
  std::string block = fmt::format("$labels{} << END\n", index);
  for (const PlotPoint& point : lines.series[index].points) {
    if (point.label.empty() || !point.y) continue;
    block += fmt::format("{} {} {}\n", shifted(lines, range, index, point), *point.y, point.label);
  }
  return block + "END\n";
}

std::string ideal_block(const PlotSeries& ideal) {
  std::string block = "$ideal << END\n";
  for (const PlotPoint& point : ideal.points) block += fmt::format("{} {}\n", point.x, *point.y);
  return block + "END\n";
}

// 1, 2 and 5 times powers of ten, where so few of these lie on the axis that gnuplot names one.
std::string decimal_tics(double floor, double top) {
  constexpr double kMostOfOneScale = 150;
  if (top / floor > kMostOfOneScale) return "";
  std::vector<std::string> tics;
  for (double power = std::pow(10.0, std::floor(std::log10(floor))); power <= top; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double at = factor * power;
      if (at >= floor && at <= top) tics.push_back(fmt::format("'{0:g}' {0:g}", at));
    }
  }
  return tics.size() < 2 ? "" : fmt::format("set ytics ({})\n", join(tics, ", "));
}

std::string axes(const Lines& lines, const Span& x, double floor, double top) {
  std::string text = "set grid ytics linetype 1 linewidth 0.5 linecolor rgb '#dddddd'\n";
  if (lines.log_x) {
    const double margin = std::pow(x.high / x.low, 0.04);
    text += fmt::format("set logscale x 2\nset xrange [{}:{}]\n", x.low / margin, x.high * margin);
  } else {
    const double margin = std::max(0.05 * (x.high - x.low), 0.05);
    text += fmt::format("set xrange [{}:{}]\n", x.low - margin, x.high + margin);
  }
  if (lines.log_y)
    text += fmt::format("set logscale y {}\nset format y '%g'\nunset mytics\n", lines.log_y);
  if (lines.log_y == 10) text += decimal_tics(floor, top);
  text += fmt::format("set yrange [{}:{}]\n", floor, top);
  std::vector<std::string> tics;
  for (const Tic& tic : lines.x_tics)
    tics.push_back(fmt::format("{} {}", quoted(tic.label), tic.at));
  if (!tics.empty()) text += fmt::format("set xtics ({})\n", join(tics, ", "));
  return text;
}

std::string curves(const Lines& lines) {
  std::vector<std::string> parts;
  if (lines.ideal) {
    parts.push_back(
        "$ideal using 1:2 with lines dashtype (8,6) linewidth 1 linecolor rgb '#000000' title " +
        quoted(lines.ideal->name));
  }
  for (std::size_t i = 0; i < lines.series.size(); ++i) {
    const PlotSeries& series = lines.series[i];
    if (has_dots(series)) {
      parts.push_back(
          fmt::format("$runs{} using 1:2 with points pointtype 7 pointsize 0.3 "
                      "linecolor rgb '{}' notitle",
                      i, colour(i)));
    }
    parts.push_back(fmt::format("$series{} using 1:2 with linespoints {} title {}", i,
                                line_style(i, series.is_predicted),
                                quoted(shortened(series.name, kMostLineName))));
    if (has_rings(series)) {
      const bool first = std::none_of(
          lines.series.begin(), lines.series.begin() + static_cast<std::ptrdiff_t>(i), has_rings);
      parts.push_back(
          fmt::format("$rings{} using 1:2 with points pointtype 6 pointsize 2.2 linewidth 1.5 "
                      "linecolor rgb '{}' {}",
                      i, kFaint, first ? "title " + quoted(lines.ring_title) : "notitle"));
    }
    if (has_labels(series)) {
      parts.push_back(
          fmt::format("$labels{} using 1:2:3 with labels offset 1.5,0.8 textcolor rgb '{}' notitle",
                      i, colour(i)));
    }
    if (has_bars(series)) {
      parts.push_back(fmt::format("$series{} using 1:2:3:4 with yerrorbars {} notitle", i,
                                  line_style(i, series.is_predicted)));
    }
  }
  return "plot " + join(parts, ", \\\n  ") + "\n";
}

}  // namespace

std::string lines_script(const Lines& lines) {
  const Span x = x_range(lines), y = y_range(lines);
  const double floor = lines.log_y ? y.low / 1.2 : 0;
  const double top = lines.log_y ? y.high * 1.2 : 1.04 * y.high;
  std::string script = axes(lines, x, floor, top);
  if (lines.ideal) script += ideal_block(*lines.ideal);
  for (std::size_t i = 0; i < lines.series.size(); ++i) {
    script += data_block(lines, x, i);
    if (has_dots(lines.series[i])) script += dots_block(lines, x, i);
    if (has_rings(lines.series[i])) script += rings_block(lines, x, i);
    if (has_labels(lines.series[i])) script += labels_block(lines, x, i);
  }
  return script + curves(lines);
}

}  // namespace paceline
