#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/plots/script.h"
#include "analysis/plots/study_plots.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostLineName = 60;

Range x_range(const Lines& lines) {
  Range range;
  for (const PlotSeries& series : lines.series) {
    for (const PlotPoint& point : series.points) range.add(point.x);
  }
  return range;
}

Range y_range(const Lines& lines) {
  Range range;
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
double shifted(const Lines& lines, const Range& range, std::size_t index, const PlotPoint& point) {
  const double x = point.x;
  if (!lines.aside || !point.interval) return x;
  const double steps =
      static_cast<double>(index) - (static_cast<double>(lines.series.size()) - 1) / 2;
  if (lines.log_x) return x * std::pow(range.high / range.low, 0.008 * steps);
  return x + 0.01 * (range.high - range.low) * steps;
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

std::string axes(const Lines& lines, const Range& x, double floor, double top) {
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
  return lines.x_tics.empty() ? text : text + tics_script(lines.x_tics);
}

// The data, and how they are drawn.
class LinesScript {
 public:
  explicit LinesScript(const Lines& lines)
      : lines_(lines), range_(x_range(lines)), looks_(line_looks(lines.series)) {
    if (lines.ideal) add_ideal(*lines.ideal);
    for (std::size_t i = 0; i < lines.series.size(); ++i) add_series(i);
  }

  std::string text() const {
    const Range y = y_range(lines_);
    const double floor = lines_.log_y ? y.low / 1.2 : 0;
    const double top = lines_.log_y ? y.high * 1.2 : 1.04 * y.high;
    return axes(lines_, range_, floor, top) + data_ + "plot " + join(parts_, ", \\\n  ") + "\n";
  }

 private:
  void add_ideal(const PlotSeries& ideal) {
    data_ += "$ideal << END\n";
    for (const PlotPoint& point : ideal.points) data_ += fmt::format("{} {}\n", point.x, *point.y);
    data_ += "END\n";
    parts_.push_back(
        "$ideal using 1:2 with lines dashtype (8,6) linewidth 1 linecolor rgb '#000000' title " +
        quoted(ideal.name));
  }

  void add_series(std::size_t i) {
    const PlotSeries& series = lines_.series[i];
    const std::string style = line_style(i, looks_[i], series.is_predicted);
    add_line(i);
    if (add_block("runs", i, &dots)) {
      parts_.push_back(fmt::format(
          "$runs{} using 1:2 with points pointtype 7 pointsize 0.3 linecolor rgb '{}' notitle", i,
          colour(looks_[i].colour)));
    }
    parts_.push_back(fmt::format("$series{} using 1:2 with linespoints {}{} title {}", i, style,
                                 looks_[i].dash, quoted(shortened(series.name, kMostLineName))));
    if (add_block("rings", i, &ring)) {
      parts_.push_back(
          fmt::format("$rings{} using 1:2 with points pointtype 6 pointsize 2.2 linewidth 1.5 "
                      "linecolor rgb '{}' {}",
                      i, kFaint, has_rings_ ? "notitle" : "title " + quoted(lines_.ring_title)));
      has_rings_ = true;
    }
    if (add_block("labels", i, &label)) {
      parts_.push_back(
          fmt::format("$labels{} using 1:2:3 with labels offset 1.5,0.8 textcolor rgb '{}' notitle",
                      i, colour(looks_[i].colour)));
    }
    if (has_bars({series})) {
      parts_.push_back(fmt::format("$series{} using 1:2:3:4 with yerrorbars {} notitle", i, style));
    }
  }

  // A blank line breaks the line.
  void add_line(std::size_t i) {
    data_ += fmt::format("$series{} << END\n", i);
    for (const PlotPoint& point : lines_.series[i].points) {
      if (!point.y || point.begins_line) data_ += '\n';
      if (!point.y) continue;
      const Interval bar = point.interval.value_or(Interval{*point.y, *point.y});
      data_ += fmt::format("{} {} {} {}\n", shifted(lines_, range_, i, point), *point.y, bar.low,
                           bar.high);
    }
    data_ += "END\n";
  }

  // What points have beside their values; false: nothing.
  bool add_block(const char* name, std::size_t i, std::string (*text)(const PlotPoint&, double)) {
    std::string rows;
    for (const PlotPoint& point : lines_.series[i].points) {
      if (point.y) rows += text(point, shifted(lines_, range_, i, point));
    }
    if (!rows.empty()) data_ += fmt::format("${}{} << END\n{}END\n", name, i, rows);
    return !rows.empty();
  }

  static std::string dots(const PlotPoint& point, double x) {
    std::string rows;
    for (const double run : point.runs) rows += fmt::format("{} {}\n", x, run);
    return rows;
  }
  static std::string ring(const PlotPoint& point, double x) {
    return point.ringed ? fmt::format("{} {}\n", x, *point.y) : "";
  }
  static std::string label(const PlotPoint& point, double x) {
    return point.label.empty() ? "" : fmt::format("{} {} {}\n", x, *point.y, point.label);
  }

  const Lines& lines_;
  const Range range_;
  const std::vector<LineLook> looks_;
  std::string data_;
  std::vector<std::string> parts_;
  bool has_rings_ = false;
};

}  // namespace

std::string lines_script(const Lines& lines) {
  return LinesScript(lines).text();
}

}  // namespace paceline
