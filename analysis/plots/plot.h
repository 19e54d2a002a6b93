// What a picture shows, as a value that a test can look at; script.h says how gnuplot draws it.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

// No y: there is no result. The line is broken there and a cross stands on the axis.
struct PlotPoint {
  double x = 0;
  std::optional<double> y;
  std::optional<Interval> interval;
  std::vector<double> runs = {};  // the y of each run of which y is a mean: small dots
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // by x
};

struct Tic {
  double at = 0;
  std::string label;
};

struct Lines {
  std::vector<PlotSeries> series;
  std::optional<PlotSeries> ideal;  // dashed and black
  std::vector<Tic> x_tics;          // empty: gnuplot's choice
  bool log_x = false;
  int log_y = 0;                    // the base of a logarithmic axis; 0: linear, from 0
  std::optional<double> highest_y;  // what lies above is cut off; none: all is seen
  bool aside = false;               // series stand aside by a hair, so that bars do not cover bars
};

struct Bar {
  double value = 0;
  std::optional<Interval> interval;
  std::string label;  // at its end
};

struct BarSeries {
  std::string name;
  std::vector<std::optional<Bar>> bars;  // one a group; none is a gap
  std::optional<std::size_t> colour{};   // of the palette; none: by its place
};

// Lying bars: a line a group, or in it one a series.
struct Bars {
  std::vector<std::string> groups;  // from the top
  std::vector<BarSeries> series;
  bool stacked = false;
  std::vector<std::string> notes;  // of stacks: behind the end, one a group
};

struct HeatCell {
  std::string text, detail;  // two lines
  double heat = 0;           // 0 (white) to 1 (dark)
};

struct HeatMap {
  std::vector<std::string> columns, rows;                   // rows from the bottom
  std::vector<std::vector<std::optional<HeatCell>>> cells;  // [row][column]; none is a gap
};

struct Plot {
  std::string name;  // of its file: "speedup"
  std::string title, subtitle, x_label, y_label;
  std::variant<Lines, Bars, HeatMap> body;
};

// Of the speed-up plot, by which tests and callers know it.
constexpr char kSpeedUpPlot[] = "speedup";

}  // namespace paceline
