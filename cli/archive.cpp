// paceline archive STUDY --out FILE

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/archive/study_archive.h"
#include "run/version.h"
#include "sweeps/inventory.h"

namespace paceline {

namespace {

struct ArchiveOptions {
  std::string study, out;
  bool json = false;
};

int archive_study(const ArchiveOptions& options) {
  const ArchivedStudy archived = write_archive(options.study, options.out, build().version);
  for (const std::string& note : archived.notes) print_note("left out: {}\n", note);
  if (options.json) {
    print("{}", archived.manifest);
    return 0;
  }
  const StudySummary& summary = archived.summary;
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.out));
  print("{}: study {}, {} ({} completed), {}, {}\n{}", options.out, summary.study,
        counted(summary.records, "record"), summary.completed, counted(archived.files, "file"),
        format_bytes(bytes), to_text(summary));
  return 0;
}

}  // namespace

void add_archive(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("archive", "Write a study into one file");
  auto options = std::make_shared<ArchiveOptions>();
  verb->add_option("STUDY", options->study, "a study's folder (results/local/NAME)")->required();
  verb->add_option("--out", options->out, "a new file: .tar.zst, .tar.gz or .tar.xz")
      ->type_name("FILE")
      ->required();
  verb->add_flag("--json", options->json, "print the archive's manifest");
  verb->footer(
      "The file holds the spec, the plan, every record with its step samples, and a manifest: "
      "hashes,\n"
      "machines, and which planned runs are missing. It holds no logs, checkpoints or reports.\n"
      "The same study gives the same bytes.\n"
      "Examples:\n  paceline archive results/local/quick --out quick.tar.zst\n"
      "  paceline archive results/local/quick --out quick.tar.gz --json");
  verb->callback([options, &action] { action = [options] { return archive_study(*options); }; });
}

// paceline merge ARCHIVE... STUDY

namespace {

struct MergeOptions {
  std::vector<std::string> names;  // the archives, then the folder
  bool json = false, dry_run = false;
};

std::string format_line(const MergedArchive& merged, bool dry_run) {
  std::string text = fmt::format("{}: {}, {} {} added, {} there already\n", merged.file,
                                 counted(merged.runs, "run"), merged.runs - merged.known,
                                 dry_run ? "would be" : "were", merged.known);
  if (merged.renumbered > 0) {
    text += fmt::format("  {} of them as another attempt, as other runs have their numbers\n",
                        merged.renumbered);
  }
  return text;
}

Json merge_json(const MergedStudy& merged, bool dry_run) {
  Json json = to_json(merged.summary);
  json["dry_run"] = dry_run;
  json["archives"] = Json::array();
  for (const MergedArchive& each : merged.archives) {
    json["archives"].push_back({{"file", each.file},
                                {"runs", each.runs},
                                {"added", each.runs - each.known},
                                {"known", each.known},
                                {"renumbered", each.renumbered}});
  }
  return json;
}

int merge(const MergeOptions& options) {
  const std::filesystem::path study = options.names.back();
  std::error_code none;
  if (options.names.size() < 2 || std::filesystem::is_regular_file(study, none)) {
    throw Error(
        ErrorKind::usage, "the study's folder is missing", study.string(),
        "name the archives and then the folder: paceline merge a.tar.zst results/local/NAME");
  }
  std::vector<StudyArchive> archives;
  for (std::size_t i = 0; i + 1 < options.names.size(); ++i)
    archives.emplace_back(options.names[i]);
  check_study(archives, archives.front().manifest().study);
  std::optional<StudyLock> lock;
  if (!options.dry_run) lock.emplace(study);
  const MergedStudy merged = merge_archives(archives, study, options.dry_run);
  if (options.json) {
    print("{}\n", json_text(merge_json(merged, options.dry_run), 2));
    return 0;
  }
  for (const MergedArchive& each : merged.archives) print("{}", format_line(each, options.dry_run));
  print("{}: study {}, {} ({} completed)\n{}", study.string(), merged.summary.study,
        counted(merged.summary.records, "record"), merged.summary.completed,
        to_text(merged.summary));
  return 0;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("merge", "Add the runs of archives to a study");
  auto options = std::make_shared<MergeOptions>();
  verb->add_option("ARCHIVE", options->names, "files of paceline archive, then the study's folder")
      ->required();
  verb->add_flag("--dry-run", options->dry_run, "say what would be added, write nothing");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Every file is checked against its hash before anything is written. Runs that are there "
      "already\n"
      "are skipped; another run of the same point and repeat is another attempt. Nothing is "
      "changed or\n"
      "removed, so a merge can be repeated. Reports give the runs of unlike machines rows of their "
      "own.\n"
      "Examples:\n  paceline merge quick.tar.zst results/local/quick --dry-run\n"
      "  paceline merge site-a.tar.zst site-b.tar.zst both");
  verb->callback([options, &action] { action = [options] { return merge(*options); }; });
}

}  // namespace paceline
