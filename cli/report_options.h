// Options that several verbs on studies share.
#pragma once

#include <string>
#include <vector>

#include "analysis/render/render.h"
#include "analysis/study/comparison.h"

namespace CLI {
class App;
}

namespace paceline {

Base parse_base(const std::string& name);             // "matched" or "best"; throws usage
Base parse_base_or_setting(const std::string& text);  // or "bucket_mb=8"
// A name and its description, wrapped to the width of the output.
std::string name_and_text(std::string_view name, std::size_t column, const std::string& text);

TextStyle style_of_output();  // colours and line width of standard output

struct PlotOptions {
  std::vector<std::string> formats = {"svg", "png"};
  bool none = false, asked = false;
};

// Adds --plots and --no-plots, which exclude each other.
void add_plot_options(CLI::App& verb, PlotOptions& plots);

// Adds --pool and --no-pool, which exclude each other.
void add_pool_options(CLI::App& verb, Pooling& pooling);

// The formats to write to the folder `out`. Throws usage on plots that were asked for but have no
// folder, and on an unknown format.
std::vector<std::string> plot_formats(const PlotOptions& plots, const std::string& out);

}  // namespace paceline
