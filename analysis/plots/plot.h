// The content of a plot as a plain value, which tests can inspect; script.h turns it into a gnuplot
// script.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

// Without y there is no result: the line is interrupted.
struct PlotPoint {
  double x = 0;
  std::optional<double> y;
  std::optional<Interval> interval;
  std::vector<double> runs = {};  // the y of each run that the mean y covers, shown as small dots
  bool ringed = false;            // see Lines::ring_title
  std::string label = {};         // written beside it; one word
  bool begins_line = false;       // no line leads to it from the point before
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points = {};  // sorted by x
  bool is_predicted = false;           // dashed, with hollow points
  std::string machine = {};            // a part of the name; see LineLook
};

struct Tic {
  double at = 0;
  std::string label;
};

struct Lines {
  std::vector<PlotSeries> series = {};
  std::optional<PlotSeries> ideal = {};  // dashed and black
  std::vector<Tic> x_tics = {};          // empty: gnuplot's choice
  bool log_x = false;
  int log_y = 0;                         // base of a logarithmic axis; 0: linear, from 0
  std::optional<double> highest_y = {};  // higher values are cut off; empty: everything is visible
  std::string ring_title = "lower quality";  // meaning of ringed points
  bool aside = false;  // shifts series slightly, so that error bars do not overlap
};

struct Bar {
  double value = 0;
  std::optional<Interval> interval;
  std::string label;  // at the end of the line
};

struct BarSeries {
  std::string name;
  std::vector<std::optional<Bar>> bars;  // one per group; empty: a gap
  std::optional<std::size_t> colour{};   // index into the palette; empty: by position
};

// Horizontal bars: one line per group, or per series of a group.
struct Bars {
  std::vector<std::string> groups = {};  // from top to bottom
  std::vector<BarSeries> series = {};
  bool stacked = false;
  std::vector<std::string> notes = {};  // for stacks: text behind each bar, one per group
};

struct HeatCell {
  std::string text, detail;  // two lines
  double heat = 0;           // 0 (white) to 1 (dark)
};

// Of many rows without texts.
struct HeatMap {
  std::vector<std::string> columns, rows;                   // rows from bottom to top
  std::vector<std::vector<std::optional<HeatCell>>> cells;  // [row][column]; empty: a gap
};

// One series over time. Does not begin at 0.
struct Timeline {
  struct Level {
    double begin = 0, end = 0;  // on the x axis
    double y = 0;
    std::optional<Interval> interval;
  };
  std::vector<PlotPoint> points;  // ringed: outlying
  std::vector<Level> levels;
  std::vector<Tic> shifts;  // dashed vertical lines, labelled
  std::vector<Tic> x_tics;
};

struct Plot {
  std::string name = {};  // base of its file name: "speedup"
  std::string title = {}, subtitle = {}, x_label = {}, y_label = {};
  std::variant<Lines, Bars, HeatMap, Timeline> body = {};
};

// "lumi, 16 GPUs" without "lumi".
std::string without_part(std::string name, const std::string& part);

// Identifies the speed-up plot.
constexpr char kSpeedUpPlot[] = "speedup";

// One colour for each part of a run, in every picture that shows it.

// An index into the palette, by the part's name in a breakdown or in an explanation. What no part
// causes is grey.
constexpr std::size_t part_colour(std::string_view part) {
  constexpr std::size_t kGrey = 6;
  constexpr std::array<std::pair<std::string_view, std::size_t>, 13> kColours = {
      {{"forward", 0},
       {"compute", 0},
       {"communication (exposed)", 1},
       {"communication", 1},
       {"backward", 2},
       {"update", 3},
       {"communication or straggler", 10},
       {"waiting for input", 4},
       {"input", 4},
       {"other", 5},
       {"launch", 5},
       {"straggler", 11},
       {"outside of steps", 9}}};
  for (const auto& [name, colour] : kColours) {
    if (name == part) return colour;
  }
  return kGrey;
}

}  // namespace paceline
