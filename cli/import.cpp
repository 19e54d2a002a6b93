// paceline import FORMAT FILE... --study NAME
#include "results/import/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/verb.h"
#include "engine/core/json_text.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/import/format.h"
#include "run/version.h"
#include "sweeps/study_lock.h"

namespace paceline {

namespace {

constexpr char kImportFooter[] = R"(Examples:
  paceline import nccl-tests all_reduce.txt --study links
  paceline import osu osu_allreduce.txt --study links --set gpus=64 --set nodes=16
  paceline import mlperf result_*.txt --study resnet --set gpus=16
  paceline import jobstats job-*.txt --study jobs --set workload=resnet50
  paceline import horovod-timeline timeline.json --study timeline
  paceline import google-benchmark build.json --study micro
  paceline import csv table.csv --study page --set workload=resnet50 \
    --column gpus=GPUs --column samples_per_second=img/s \
    --column "fit_seconds=time (min)*60"
  paceline report results/local/links

Records are of kind imported, and tables label them so. Importing the same file again adds
nothing. docs/import.md says what each format gives.)";

struct ImportArguments {
  ImportRequest request;
  std::string results = "results/local";
  bool dry_run = false, json = false;
};

std::string counted_records(std::size_t count) {
  return fmt::format("{} record{}", count, count == 1 ? "" : "s");
}

bool is_warning(const std::string& note) {
  return note.starts_with("warning: ");
}

std::string format_line(const ImportedFile& file, bool dry_run) {
  std::size_t added = 0;
  for (const ImportedRecord& record : file.records) added += record.is_new ? 1 : 0;
  const std::size_t known = file.records.size() - added;
  std::string text = file.name + ": ";
  if (added > 0) {
    text += fmt::format("{} {} from {}", counted_records(added),
                        dry_run ? "would be imported" : "imported", file.tool);
  }
  if (known > 0) {
    text +=
        fmt::format("{}{} imported before, skipped", added > 0 ? "; " : "", counted_records(known));
  }
  text += "\n";
  for (const std::string& note : file.notes) {
    if (!is_warning(note)) text += "  " + note + "\n";
  }
  return text;
}

Json import_json(const Import& import, const std::vector<ImportedFile>& files, bool dry_run) {
  Json json = {{"study", import.study().string()}, {"dry_run", dry_run}, {"files", Json::array()}};
  for (const ImportedFile& file : files) {
    Json records = Json::array();
    for (const ImportedRecord& record : file.records) {
      records.push_back(
          {{"record", record.file.string()}, {"line", record.line}, {"new", record.is_new}});
    }
    json["files"].push_back(
        {{"file", file.name}, {"tool", file.tool}, {"records", records}, {"notes", file.notes}});
  }
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
      if (is_warning(note)) print_note("{}: {}\n", file.name, note);
    }
  }
  if (arguments.json) {
    print("{}\n", json_text(import_json(import, files, arguments.dry_run), 2));
    return EXIT_SUCCESS;
  }
  for (const ImportedFile& file : files) print("{}", format_line(file, arguments.dry_run));
  if (!arguments.dry_run) print("see: paceline report {}\n", shell_quote(import.study().string()));
  return EXIT_SUCCESS;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("import", "Read results of other tools");
  auto arguments = std::make_shared<ImportArguments>();
  verb->footer(kImportFooter);
  std::vector<std::string> formats;
  for (const ImportFormat& format : import_formats()) formats.emplace_back(format.name);
  verb->add_option("FORMAT", arguments->request.format, "whose output the files are")
      ->type_name("TEXT:{" + join(formats, ",") + "}")
      ->required();
  verb->add_option("FILE", arguments->request.files, "files of this format")->required();
  verb->add_option("--study", arguments->request.study, "study that gets the records")
      ->type_name("NAME")
      ->required();
  verb->add_option("--results", arguments->results, "folder of studies")
      ->type_name("FOLDER")
      ->capture_default_str();
  verb->add_option("--set", arguments->request.set,
                   "what the files do not say: gpus, nodes, workload, hardware, ... (repeatable)")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  verb->add_option("--column", arguments->request.columns,
                   "csv: the heading of a key, with a factor if need be (repeatable)")
      ->type_name("KEY=HEADING[*X]")
      ->expected(1)
      ->take_all();
  verb->add_flag("--dry-run", arguments->dry_run, "say what would be imported, write nothing");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback(
      [arguments, &action] { action = [arguments] { return import_files(*arguments); }; });
}

}  // namespace paceline
