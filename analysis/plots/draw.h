// Draws plots with gnuplot (Debian package gnuplot-nox).
#pragma once

#include <filesystem>
#include <string>

#include "analysis/plots/plot.h"

namespace paceline {

// Throws usage unless `format` is "svg", "png" or "pdf".
void check_plot_format(const std::string& format);

// The image's bytes. Throws usage naming the package if gnuplot is missing, internal with gnuplot's
// message if it fails. Call from the main thread (engine/core/child.h).
std::string draw_plot(const Plot& plot, const std::string& format);

// Writes the image to `file` atomically.
void draw_plot(const Plot& plot, const std::string& format, const std::filesystem::path& file);

}  // namespace paceline
