// paceline history DIR...
#include "analysis/history/history.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "analysis/screen/screen.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kHistoryFooter[] = R"(Examples:
  paceline history nightly/quick
  paceline history monday/quick tuesday/quick wednesday/quick ...
  paceline history nightly/quick --metric serial-fraction --point gpus=16
  paceline history results/reference/csc-gpt-neo
  paceline history screens                        # which part of a machine is slow since when
  paceline history nightly/quick --since 2026-01-01 --out history     # page and pictures
  paceline history nightly/quick --json
  paceline history nightly/quick --fail-on-shift --since 2026-01-01   # in CI

A shift is a change of level beyond chance, neither a spike nor a drift. What each figure is, and
how often a shift is false: docs/history.md)";

struct HistoryArguments {
  std::vector<std::string> studies, metrics, points;
  DocumentArguments output;
  std::string since;
  bool fail_on_shift = false;
};

HistoryOptions make_options(const HistoryArguments& arguments) {
  HistoryOptions options;
  for (const std::string& metric : arguments.metrics) {
    options.metrics.push_back(parse_history_metric(metric));
  }
  options.points = parsed_selections(arguments.points, "--point", "gpus=16");
  if (!arguments.since.empty()) {
    options.since = parse_day(arguments.since);
    if (!options.since) {
      throw usage_error("\"" + arguments.since + "\" is not a date", "--since",
                        "write for example --since 2026-01-31");
    }
  }
  return options;
}

std::vector<HistoryStudy> load_history(const std::vector<std::string>& places,
                                       const HistoryOptions& options) {
  const std::vector<std::filesystem::path> files = find_screens(places);
  if (files.empty()) return make_history(load_stores({places.begin(), places.end()}), options);
  if (!options.metrics.empty() || !options.points.empty()) {
    throw usage_error("screens have no points or metrics to choose",
                      options.metrics.empty() ? "--point" : "--metric",
                      "leave it out; --since chooses screens");
  }
  return screen_history(mapped(files, read_screen), options.since);
}

int history(const HistoryArguments& arguments) {
  output_options(arguments.output);  // refuses them before anything is read
  const HistoryOptions options = make_options(arguments);
  const History found = find_history(load_history(arguments.studies, options));
  const bool fails = arguments.fail_on_shift && found.has_worse();
  try {
    print_documents({history_document(found)}, arguments.output);
  } catch (const Error& error) {
    if (!fails) throw;
    print_note("paceline: {}\n", error.what());
  }
  return fails ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace

void add_history(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<HistoryArguments>();
  CLI::App* verb =
      app.add_subcommand("history", "Find when a study changed, and what changed with it");
  verb->footer(kHistoryFooter);
  verb->add_option("STUDY", arguments->studies,
                   "folders of run records of several sessions, or published tables with dates")
      ->required();
  add_value(*verb, "--metric NAME", arguments->metrics,
            "what to look at, separated by commas: time, throughput, speed-up, efficiency, "
            "serial-fraction, exposed-communication, energy, accuracy; if not given, time (or else "
            "throughput), serial-fraction (or else efficiency) and the last three")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_value(*verb, "--point,--only KEY=VALUE", arguments->points,
            "use only these records (or KEY=V1,V2; repeatable)")
      ->allow_extra_args(false);
  add_value(*verb, "--since DATE", arguments->since, "use only sessions from this day on");
  add_format_options(*verb, arguments->output);
  verb->add_flag("--fail-on-shift", arguments->fail_on_shift,
                 "exit with 1 if a level shift for the worse is found");
  add_folder_options(*verb, arguments->output, "history");
  verb->callback([arguments, &action] { action = [arguments] { return history(*arguments); }; });
}

}  // namespace paceline
