// What the bodies of scripts share. Only for the sources of this folder.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/plots/plot.h"

namespace paceline {

// Commands between the frame and the end: ranges, tics, data and the plot command.
std::string lines_script(const Lines& lines);
std::string bars_script(const Bars& bars);
std::string heat_map_script(const HeatMap& map);

// How high the picture must be, in dots of an SVG, legend left out.
std::size_t body_height(const Bars& bars);
std::size_t body_height(const HeatMap& map);

// gnuplot substitutes nothing within single quotes, and a typographic quote does not end them.
std::string quoted(const std::string& text);
// At most so many characters; a cut ends in "…".
std::string clipped(const std::string& text, std::size_t characters);
// "linecolor rgb '#0072b2' pointtype 7 pointsize 0.8 linewidth 1.2" of the i-th series.
std::string line_style(std::size_t index);
std::string colour(std::size_t index);

constexpr char kFaint[] = "#666666";  // gaps and notes

}  // namespace paceline
