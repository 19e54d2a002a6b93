// Turns a plot into a gnuplot script.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/plots/plot.h"

namespace paceline {

// The script writes the image to the file in ARG1. Text from records appears only in single quotes,
// where gnuplot substitutes nothing. 700 pixels wide at 14 points; PNG has twice the resolution.
// Uses Okabe and Ito's palette, which is safe for colour-blind readers.
std::string plot_script(const Plot& plot, const std::string& format);

// Shared parts of the scripts. Private to this folder.

// Everything between the frame and the end: ranges, tics, data and the plot command.
std::string lines_script(const Lines& lines);
std::string bars_script(const Bars& bars);
std::string heat_map_script(const HeatMap& map);
std::string timeline_script(const Timeline& timeline);
// What its legend names, in order.
std::vector<std::string> legend_lines(const Timeline& timeline);

// Height of the plot without its legend, in SVG pixels.
std::size_t body_height(const Bars& bars);
std::size_t body_height(const HeatMap& map);

// Quotes text for gnuplot, which substitutes nothing in single quotes. Single quotes become
// typographic ones.
std::string quoted(const std::string& text);
// Cuts to at most `characters`, with "…" at the cut.
std::string clipped(const std::string& text, std::size_t characters);
// Keeps both ends of a name, because the end is often what tells it from others.
std::string shortened(const std::string& text, std::size_t characters);
// The colour of a series is what it shares with those of other machines, its dash is the machine.
// Of one machine, or of more than there are dashes, each series has its own colour.
struct LineLook {
  std::size_t colour = 0;
  const char* dash = "";  // " dashtype (7,4)"
};
std::vector<LineLook> line_looks(const std::vector<PlotSeries>& series);
// "linecolor rgb '#0072b2' pointtype 7 pointsize 0.8 linewidth 1.2" for series `index`; of
// predicted ones dashed and hollow.
std::string line_style(std::size_t index, const LineLook& look, bool predicted = false);
std::string colour(std::size_t index);
std::string tics_script(const std::vector<Tic>& tics);  // of the x axis

constexpr char kFaint[] = "#666666";  // gaps and notes

// Draws plots with gnuplot (Debian package gnuplot-nox).

// Throws usage unless `format` is "svg", "png" or "pdf".
void check_plot_format(const std::string& format);

// The image's bytes. Throws usage naming the package if gnuplot is missing, internal with gnuplot's
// message if it fails. Call from the main thread (engine/core/child.h).
std::string draw_plot(const Plot& plot, const std::string& format);

}  // namespace paceline
