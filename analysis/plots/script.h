// From a plot to a gnuplot script.
#pragma once

#include <string>

#include "analysis/plots/plot.h"

namespace paceline {

// The whole script, which writes the picture to the file in ARG1. Text of records stands in it only
// within single quotes, in which gnuplot substitutes nothing. 700 dots wide at 14 points, PNG at
// twice the dots; colours of Okabe and Ito's palette, told apart also with colour-blind eyes.
std::string plot_script(const Plot& plot, const std::string& format);

}  // namespace paceline
