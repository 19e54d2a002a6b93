// Turns a plot into a gnuplot script.
#pragma once

#include <string>

#include "analysis/plots/plot.h"

namespace paceline {

// The script writes the image to the file in ARG1. Text from records appears only in single quotes,
// where gnuplot substitutes nothing. 700 pixels wide at 14 points; PNG has twice the resolution.
// Uses Okabe and Ito's palette, which is safe for colour-blind readers.
std::string plot_script(const Plot& plot, const std::string& format);

}  // namespace paceline
