#include "cli/report_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "analysis/plots/draw.h"
#include "engine/core/aligned.h"
#include "engine/core/error.h"
#include "engine/core/terminal.h"
#include "engine/core/text.h"

namespace paceline {

Base parse_base(const std::string& name) {
  if (name == "matched") return Base::matched;
  if (name == "best") return Base::best;
  throw Error(ErrorKind::usage, "unknown base \"" + name + "\"", "--base",
              suggestion(name, {"matched", "best"}));
}

Base parse_base_or_setting(const std::string& text) {
  if (text.find('=') == std::string::npos && text != "matched" && text != "best") {
    throw Error(ErrorKind::usage, "unknown base \"" + text + "\"", "--base",
                "give matched, best, or a setting such as bucket_mb=8");
  }
  if (text.find('=') == std::string::npos) return parse_base(text);
  auto [axis, value] = parsed_selection(text, "--base", "bucket_mb=8");
  return {std::move(axis), std::move(value)};
}

std::string name_and_text(std::string_view name, std::size_t column, const std::string& text) {
  const std::string_view gap = name.size() < column ? "" : " ";  // a name may be longer
  return wrapped(text, style_of_output().terminal_width, fmt::format("{:<{}}{}", name, column, gap),
                 column);
}

TextStyle style_of_output() {
  TextStyle style;
  style.colours = colours_welcome(STDOUT_FILENO);
  style.terminal_width = columns_of_output(STDOUT_FILENO);
  style.width = std::min(style.width, style.terminal_width);
  return style;
}

void add_plot_options(CLI::App& verb, PlotOptions& plots) {
  CLI::Option* formats = verb.add_option("--plots", plots.formats,
                                         "formats of the plots: svg, png, pdf, separated by commas")
                             ->type_name("FORMAT")
                             ->delimiter(',')
                             ->allow_extra_args(false)
                             ->capture_default_str()
                             ->each([&plots](const std::string&) { plots.asked = true; });
  verb.add_flag("--no-plots", plots.none, "write no plots")->excludes(formats);
}

void add_pool_options(CLI::App& verb, Pooling& pooling) {
  CLI::Option* pool = verb.add_flag_callback(
      "--pool", [&pooling] { pooling = Pooling::always; },
      "one table of all studies, with sessions as the unit of intervals, however few");
  verb.add_flag_callback(
          "--no-pool", [&pooling] { pooling = Pooling::never; },
          "runs as the unit of intervals, however many sessions")
      ->excludes(pool);
}

std::vector<std::string> plot_formats(const PlotOptions& plots, const std::string& out) {
  if (out.empty() && plots.asked) {
    throw Error(ErrorKind::usage, "plots need an output folder", "--plots", "add --out DIR");
  }
  if (plots.none) return {};
  for (const std::string& format : plots.formats) check_plot_format(format);
  return plots.formats;
}

}  // namespace paceline
