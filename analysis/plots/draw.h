// Pictures by gnuplot (Debian package gnuplot-nox).
#pragma once

#include <filesystem>
#include <string>

#include "analysis/plots/plot.h"

namespace paceline {

// "svg", "png" or "pdf"; throws usage otherwise.
void check_plot_format(const std::string& format);

// The picture's bytes. Throws usage naming the package where gnuplot is missing, internal with its
// message where it fails. Call from the main thread (engine/core/child.h).
std::string draw_plot(const Plot& plot, const std::string& format);

// The same, put at `file` whole.
void draw_plot(const Plot& plot, const std::string& format, const std::filesystem::path& file);

}  // namespace paceline
