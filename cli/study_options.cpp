#include "cli/study_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "analysis/plots/script.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline {

void add_study_options(CLI::App& verb, StudyOptions& options) {
  verb.add_option("spec", options.spec, "a sweep spec: a file, or the name of one that ships")
      ->required();
  verb.add_option("--results", options.results, "folder of studies; jobs write here, too")
      ->type_name("FOLDER")
      ->capture_default_str();
  verb.add_option("--data", options.data,
                  "folder that holds the data sets' folders (data/mnist is in data)")
      ->type_name("FOLDER");
  verb.add_option("--set", options.set, "replace values of the spec (or AXIS=V1,V2; repeatable)")
      ->type_name("AXIS=VALUE")
      ->expected(1)
      ->take_all();
  verb.add_option("--repeats", options.repeats, "runs of each point")->check(CLI::Range(1, 1000));
  CLI::Option* until =
      verb.add_option("--until-precision", options.until_precision,
                      "run each point until the 95 % interval of its mean time is this narrow (±)")
          ->type_name("PERCENT");
  verb.add_option("--max-repeats", options.max_repeats, "with --until-precision, of each point")
      ->needs(until)
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  verb.add_flag("--control", options.control,
                "run the smallest point twice a round, to show run-to-run noise");
  verb.add_flag("--new-build", options.new_build, "rerun points that another build recorded");
}

std::string leading_variable(const std::string& text) {
  if (text.empty() || text[0] != '$') return "";
  const bool is_braced = text.starts_with("${");
  const std::size_t begin = is_braced ? 2 : 1;
  return text.substr(begin, text.find(is_braced ? '}' : '/') - begin);
}

std::optional<std::string> filled_in(const std::string& text) {
  const std::string name = leading_variable(text);
  if (name.empty()) return text;
  const Environment environment = environment_of_process();
  const auto known = environment.find(name);
  if (known == environment.end()) return std::nullopt;
  const std::size_t end = name.size() + (text.starts_with("${") ? 3 : 1);
  return known->second + text.substr(std::min(end, text.size()));
}

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
