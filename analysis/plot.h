// The speed-up plot: speed-up over replicas, a line a ladder, error bars, a dashed ideal line.
// gnuplot draws it (Debian package gnuplot-nox).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ladder.h"

namespace paceline {

struct PlotPoint {
  int gpus = 1;
  double speed_up = 1;
  std::optional<Interval> interval;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;
};

struct Plot {
  std::string title, subtitle, x_label;
  int most_gpus = 1;
  std::vector<PlotSeries> series;
};

// Nothing where no row of several replicas has a base. Where a series has several rows of a size
// the fastest is drawn.
std::optional<Plot> make_plot(const Study& study, const Comparison& comparison,
                              const std::vector<RowFacts>& facts, const std::string& title);

// "svg", "png" or "pdf"; throws usage otherwise.
void check_plot_format(const std::string& format);

// The whole gnuplot script, which writes the picture to the file in ARG1. Text of records stands
// in it only within single quotes, in which gnuplot substitutes nothing.
std::string plot_script(const Plot& plot, const std::string& format);

// Draws into a temporary folder and puts the result at `file` whole. Throws usage naming the
// package where gnuplot is missing, internal with its message where it fails. Call from the main
// thread (engine/core/child.h).
void draw_plot(const Plot& plot, const std::string& format, const std::filesystem::path& file);

}  // namespace paceline
