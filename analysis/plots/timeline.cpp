#include <fmt/format.h>

#include <algorithm>

#include "analysis/plots/script.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kSession[] = "session", kLevel[] = "level",
               kLevelWithInterval[] = "level, 95 % interval", kOutlying[] = "outlying session",
               kShift[] = "shift";

bool has_outlying(const Timeline& timeline) {
  return std::ranges::any_of(timeline.points, &PlotPoint::ringed);
}

Interval y_range(const Timeline& timeline) {
  Interval range{*timeline.points.front().y, *timeline.points.front().y};
  const auto add = [&](double y) { range = {std::min(range.low, y), std::max(range.high, y)}; };
  for (const PlotPoint& point : timeline.points) add(*point.y);
  for (const Timeline::Level& level : timeline.levels) add(level.y);
  const double height = std::max(range.high - range.low, 0.01 * std::abs(range.high) + 1e-12);
  return {range.low - 0.08 * height, range.high + 0.3 * height};  // room for the shifts' labels
}

std::string points_block(const Timeline& timeline, const char* name, bool ringed) {
  std::string block = fmt::format("${} << END\n", name);
  for (const PlotPoint& point : timeline.points) {
    if (point.ringed == ringed) block += fmt::format("{} {}\n", point.x, *point.y);
  }
  return block + "END\n";
}

std::string levels_block(const Timeline& timeline) {
  std::string block = "$levels << END\n";
  for (const Timeline::Level& level : timeline.levels) {
    const Interval bar = level.interval.value_or(Interval{level.y, level.y});
    for (const double x : {level.begin, level.end}) {
      block += fmt::format("{} {} {} {}\n", x, level.y, bar.low, bar.high);
    }
    block += "\n\n";
  }
  return block + "END\n";
}

// Labels of neighbours stand at three heights, on the side where there is room.
std::string shifts(const Timeline& timeline, double begin, double end) {
  std::string text;
  for (std::size_t k = 0; k < timeline.shifts.size(); ++k) {
    const Tic& shift = timeline.shifts[k];
    const bool is_late = shift.at > begin + 0.75 * (end - begin);
    text += fmt::format(
        "set arrow {0} from {1}, graph 0 to {1}, graph 1 nohead dashtype (8,6) linewidth 1 "
        "linecolor rgb '{2}'\n"
        "set label {3} {4} at {1}, graph {5:.2f} {6} offset {7},0 font ',12' textcolor rgb '{2}'\n",
        k + 3, shift.at, colour(1), k + 3, quoted(shift.label),
        0.97 - 0.065 * static_cast<double>(k % 3), is_late ? "right" : "left",
        is_late ? -0.6 : 0.6);
  }
  return text;
}

}  // namespace

std::vector<std::string> legend_lines(const Timeline& timeline) {
  const bool has_intervals = std::ranges::any_of(
      timeline.levels, [](const auto& level) { return level.interval.has_value(); });
  std::vector<std::string> names = {kSession, has_intervals ? kLevelWithInterval : kLevel};
  if (has_outlying(timeline)) names.emplace_back(kOutlying);
  if (!timeline.shifts.empty()) names.emplace_back(kShift);
  return names;
}

std::string timeline_script(const Timeline& timeline) {
  const double first = timeline.points.front().x, last = timeline.points.back().x;
  const double margin = std::max(0.03 * (last - first), 0.5);
  const Interval y = y_range(timeline);
  std::string script = fmt::format(
      "set grid ytics linetype 1 linewidth 0.5 linecolor rgb '#dddddd'\n"
      "set xrange [{}:{}]\nset yrange [{}:{}]\nset style fill transparent solid 0.25 noborder\n",
      first - margin, last + margin, y.low, y.high);
  script += tics_script(timeline.x_tics);
  script += points_block(timeline, "sessions", false) + points_block(timeline, "outlying", true) +
            levels_block(timeline) + shifts(timeline, first, last);
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < timeline.levels.size(); ++k) {
    parts.push_back(fmt::format(
        "$levels index {} using 1:3:4 with filledcurves linecolor rgb '{}' notitle", k, colour(4)));
  }
  parts.push_back(
      fmt::format("$sessions using 1:2 with points pointtype 7 pointsize 0.55 "
                  "linecolor rgb '{}' title '{}'",
                  colour(0), kSession));
  for (std::size_t k = 0; k < timeline.levels.size(); ++k) {
    parts.push_back(
        fmt::format("$levels index {} using 1:2 with lines linewidth 2 linecolor rgb '{}' {}", k,
                    colour(4), k > 0 ? "notitle" : "title '" + legend_lines(timeline)[1] + "'"));
  }
  if (has_outlying(timeline)) {
    parts.push_back(
        fmt::format("$outlying using 1:2 with points pointtype 6 pointsize 1.1 linewidth "
                    "1.5 linecolor rgb '{}' title '{}'",
                    kFaint, kOutlying));
  }
  if (!timeline.shifts.empty()) {
    parts.push_back(
        fmt::format("1/0 with lines dashtype (6,4) linewidth 1 linecolor rgb '{}' title '{}'",
                    colour(1), kShift));
  }
  return script + "plot " + join(parts, ", \\\n  ") + "\n";
}

}  // namespace paceline
