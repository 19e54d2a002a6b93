// paceline import FORMAT FILE... --study NAME, export STUDY

#include "results/import/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/gate/render.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "run/version.h"
#include "sweeps/inventory.h"

namespace paceline {

namespace {

std::string import_footer() {
  std::string formats = "Formats:\n", examples = "Examples:\n";
  for (const ImportFormat& format : import_formats()) {
    formats += fmt::format("  {:<18}{}\n", format.name, format.what);
    examples += fmt::format("  paceline import {} {}\n", format.name, format.example);
  }
  return formats + "\n" + examples +
         R"(  paceline report results/local/links

Records are of kind imported, and tables label them so. Importing the same file again adds
nothing. docs/import.md says what each format gives.)";
}

struct ImportArguments {
  ImportRequest request;
  std::string results;
  bool dry_run = false, json = false;
};

Json import_json(const Import& import, const std::vector<ImportedFile>& files, bool dry_run) {
  Json json = {{"study", import.study().string()}, {"dry_run", dry_run}, {"files", Json::array()}};
  for (const ImportedFile& file : files) json["files"].push_back(file.json());
  return json;
}

int import_files(const ImportArguments& arguments) {
  ImportRequest request = arguments.request;
  request.results = arguments.results;
  request.imported_by = build_id();
  const Import import(request);
  std::optional<StudyLock> lock;
  if (!arguments.dry_run) lock.emplace(import.study());
  const std::vector<ImportedFile> files = import.write(arguments.dry_run);
  for (const ImportedFile& file : files) {
    for (const std::string& note : file.notes) {
      if (ImportedFile::is_warning(note)) print_note("{}: {}\n", file.name, note);
    }
  }
  if (arguments.json) {
    print("{}\n", json_text(import_json(import, files, arguments.dry_run), 2));
    return EXIT_SUCCESS;
  }
  for (const ImportedFile& file : files) print_text(file.text(arguments.dry_run));
  if (!arguments.dry_run) print("see: paceline report {}\n", shell_quote(import.study().string()));
  return EXIT_SUCCESS;
}

constexpr char kExportFooter[] = R"(Examples:
  paceline export results/local/quick --format github-action > output.json
  paceline export results/local/quick --format openmetrics --out metrics.txt

github-action is what github-action-benchmark calls customSmallerIsBetter; openmetrics is read by
GitLab's metrics reports and by Prometheus.)";

// None if no table can be made of the records.
std::vector<Study> find_tables(const StoreContent& content) {
  if (content.records.empty()) return {};
  try {
    return make_studies(content);
  } catch (const Error& error) {
    print_note("paceline: no speed-ups: {}\n", error.what());
    return {};
  }
}

struct ExportFormat {
  const char* name;
  std::string (*text)(const Side&, const StoreContent&);
};
constexpr std::array kFormats = {
    ExportFormat{"github-action",
                 [](const Side& side, const StoreContent&) { return github_action_json(side); }},
    ExportFormat{"openmetrics", [](const Side& side, const StoreContent& content) {
                   return open_metrics(side, find_tables(content));
                 }}};

struct ExportArguments {
  std::vector<std::string> studies;
  std::string format, out;
};

int run_export(const ExportArguments& arguments) {
  const ExportFormat& format =
      row_named(kFormats, &ExportFormat::name, arguments.format, "format", "--format");
  const OutputFile output(arguments.out, "--out", "export", is_export);
  if (!arguments.out.empty()) output.check();
  StoreContent content;
  const Side side =
      read_side("study", {arguments.studies.begin(), arguments.studies.end()}, {}, &content);
  for (const std::string& note : side.notes) print_note("paceline: {}\n", note);
  const std::string text = format.text(side, content);
  if (arguments.out.empty()) {
    print_text(text);
  } else {
    output.write(text);
  }
  return EXIT_SUCCESS;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("import", "Read results of other tools");
  auto arguments = std::make_shared<ImportArguments>();
  verb->footer(import_footer());
  std::vector<std::string> formats;
  for (const ImportFormat& format : import_formats()) formats.emplace_back(format.name);
  verb->add_option("FORMAT", arguments->request.format, "whose output the files are")
      ->type_name("TEXT:{" + join(formats, ",") + "}")
      ->required();
  verb->add_option("FILE", arguments->request.files, "files of this format")->required();
  add_value(*verb, "--study NAME", arguments->request.study, "study that gets the records")
      ->required();
  add_results(*verb, arguments->results, "folder of studies");
  add_value(*verb, "--set KEY=VALUE", arguments->request.set,
            "what the files do not say: gpus, nodes, workload, hardware, ... (repeatable)")
      ->expected(1)
      ->take_all();
  add_value(*verb, "--column KEY=HEADING[*X]", arguments->request.columns,
            "csv: the heading of a key, with a factor if need be; *gpus of a rate of one "
            "replica (repeatable)")
      ->expected(1)
      ->take_all();
  verb->add_flag("--strict", arguments->request.strict,
                 "a warning is an error: nothing is imported, exit code 65");
  verb->add_flag("--dry-run", arguments->dry_run, "say what would be imported, write nothing");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback(
      [arguments, &action] { action = [arguments] { return import_files(*arguments); }; });
}

void add_export(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* verb = app.add_subcommand("export", "Export a study for other tools");
  verb->footer(kExportFooter);
  verb->add_option("STUDY", arguments->studies, "folders of run records, or records")->required();
  add_value(*verb, "--format TEXT:{github-action,openmetrics}", arguments->format,
            "format of the output")
      ->required();
  add_value(*verb, "--out FILE", arguments->out, "write to this file instead of standard output");
  verb->callback([arguments, &action] { action = [arguments] { return run_export(*arguments); }; });
}

}  // namespace paceline
