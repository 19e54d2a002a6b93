// paceline export STUDY: for other people's tools
#include "analysis/gate/export.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <memory>

#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "engine/core/output_file.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kExportFooter[] = R"(Examples:
  paceline export results/local/quick --format gbench --out quick.json
  paceline export results/local/quick --format github-action > output.json
  paceline export results/local/quick --format openmetrics --out metrics.txt

gbench is Google Benchmark's JSON (compare.py and dashboards read it); github-action is what
github-action-benchmark calls customSmallerIsBetter; openmetrics is read by GitLab's metrics
reports and by Prometheus.)";

struct ExportFormat {
  const char* name;
  std::string (*text)(const Side&);
};
constexpr std::array kFormats = {ExportFormat{"gbench", google_benchmark_json},
                                 ExportFormat{"github-action", github_action_json},
                                 ExportFormat{"openmetrics", open_metrics}};

const ExportFormat& parse_format(const std::string& name) {
  std::vector<std::string> known;
  for (const ExportFormat& format : kFormats) {
    if (format.name == name) return format;
    known.emplace_back(format.name);
  }
  throw Error(ErrorKind::usage, "unknown format \"" + name + "\"", "--format",
              suggestion(name, known));
}

struct ExportArguments {
  std::vector<std::string> studies;
  std::string format, out;
};

int run_export(const ExportArguments& arguments) {
  const ExportFormat& format = parse_format(arguments.format);
  const OutputFile output(arguments.out, "--out", "export", is_export);
  if (!arguments.out.empty()) output.check();
  const Side side = read_side("study", {arguments.studies.begin(), arguments.studies.end()});
  for (const std::string& note : side.notes) print_note("paceline: {}\n", note);
  const std::string text = format.text(side);
  if (arguments.out.empty()) {
    print_text(text);
  } else {
    output.write(text);
  }
  return EXIT_SUCCESS;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* verb = app.add_subcommand("export", "Export a study for other tools");
  verb->footer(kExportFooter);
  verb->add_option("STUDY", arguments->studies, "folders of run records, or records")->required();
  verb->add_option("--format", arguments->format, "format of the output")
      ->type_name("TEXT:{gbench,github-action,openmetrics}")
      ->required();
  verb->add_option("--out", arguments->out, "write to this file instead of standard output")
      ->type_name("FILE");
  verb->callback([arguments, &action] { action = [arguments] { return run_export(*arguments); }; });
}

}  // namespace paceline
