// paceline export STUDY: for other people's tools
#include "analysis/gate/export.h"

#include <CLI/CLI.hpp>
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

gbench is Google Benchmark's JSON (compare.py and dashboards read it); github-action is what
github-action-benchmark calls customSmallerIsBetter.)";

struct ExportArguments {
  std::vector<std::string> studies;
  std::string format, out;
};

int run_export(const ExportArguments& arguments) {
  const std::vector<std::string> formats = {"gbench", "github-action"};
  if (arguments.format != formats[0] && arguments.format != formats[1]) {
    throw Error(ErrorKind::usage, "unknown format \"" + arguments.format + "\"", "--format",
                suggestion(arguments.format, formats));
  }
  const OutputFile output(arguments.out, "--out", "export", is_export);
  if (!arguments.out.empty()) output.check();
  const Side side = read_side("study", {arguments.studies.begin(), arguments.studies.end()});
  for (const std::string& note : side.notes) print_note("paceline: {}\n", note);
  const std::string text =
      arguments.format == formats[0] ? google_benchmark_json(side) : github_action_json(side);
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
      ->type_name("TEXT:{gbench,github-action}")
      ->required();
  verb->add_option("--out", arguments->out, "write to this file instead of standard output")
      ->type_name("FILE");
  verb->callback([arguments, &action] { action = [arguments] { return run_export(*arguments); }; });
}

}  // namespace paceline
