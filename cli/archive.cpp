// paceline archive STUDY --out FILE, merge ARCHIVE... STUDY

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/study/study.h"
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
  bool json = false, is_anonymous = false;
};

int archive_study(const ArchiveOptions& options) {
  const ArchivedStudy archived =
      options.is_anonymous ? write_archive(options.study, options.out, build().version, anonymous)
                           : write_archive(options.study, options.out, build().version);
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

struct MergeOptions {
  std::vector<std::string> names;  // the archives, then the folder
  bool json = false, dry_run = false;
};

int merge(const MergeOptions& options) {
  const std::filesystem::path study = options.names.back();
  std::error_code none;
  if (options.names.size() < 2 || std::filesystem::is_regular_file(study, none)) {
    throw usage_error(
        "the study's folder is missing", study.string(),
        "name the archives and then the folder: paceline merge a.tar.zst results/local/NAME");
  }
  std::vector<StudyArchive> archives;
  for (std::size_t i = 0; i + 1 < options.names.size(); ++i)
    archives.push_back(read_archive(options.names[i]));
  check_study(archives, archives.front().study);
  std::optional<StudyLock> lock;
  if (!options.dry_run) lock.emplace(study);
  const MergedStudy merged = merge_archives(archives, study, options.dry_run);
  Json json = to_json(merged.summary);
  json["dry_run"] = options.dry_run;
  std::string lines;
  for (const auto& [file, runs, known, renumbered] : merged.archives) {
    json["archives"].push_back({{"file", file},
                                {"runs", runs},
                                {"added", runs - known},
                                {"known", known},
                                {"renumbered", renumbered}});
    lines += fmt::format("{}: {}, {} {} added, {} there already\n", file, counted(runs, "run"),
                         runs - known, options.dry_run ? "would be" : "were", known);
    if (renumbered == 0) continue;
    lines += fmt::format("  {} of them as another attempt, as other runs have their numbers\n",
                         renumbered);
  }
  if (options.json) {
    print("{}\n", json_text(json, 2));
  } else {
    print("{}{}: study {}, {} ({} completed)\n{}", lines, study.string(), merged.summary.study,
          counted(merged.summary.records, "record"), merged.summary.completed,
          to_text(merged.summary));
  }
  return 0;
}

}  // namespace

void add_archive(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("archive", "Write a study into one file");
  auto options = std::make_shared<ArchiveOptions>();
  verb->add_option("STUDY", options->study, "a study's folder (results/local/NAME)")->required();
  add_value(*verb, "--out FILE", options->out, "a new file: .tar.zst, .tar.gz or .tar.xz")
      ->required();
  verb->add_flag("--anonymous", options->is_anonymous,
                 "remove hosts, users, accounts and paths from the records; leave the spec out");
  verb->add_flag("--json", options->json, "print the archive's manifest");
  verb->footer(
      R"(The file holds the spec, the plan, every record with its step samples, and a manifest: hashes,
machines, and which planned runs are missing. It holds no logs, checkpoints or reports.
The same study gives the same bytes.
Examples:
  paceline archive results/local/quick --out quick.tar.zst
  paceline archive results/local/quick --out quick.tar.gz --json)");
  verb->callback([options, &action] { action = [options] { return archive_study(*options); }; });
}

void add_merge(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("merge", "Add the runs of archives to a study");
  auto options = std::make_shared<MergeOptions>();
  verb->add_option("ARCHIVE", options->names, "files of paceline archive, then the study's folder")
      ->required();
  verb->add_flag("--dry-run", options->dry_run, "say what would be added, write nothing");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      R"(Every file is checked against its hash before anything is written. Runs that are there already
are skipped; another run of the same point and repeat is another attempt. Nothing is changed or
removed, so a merge can be repeated. Reports give the runs of unlike machines rows of their own.
Examples:
  paceline merge quick.tar.zst results/local/quick --dry-run
  paceline merge site-a.tar.zst site-b.tar.zst both)");
  verb->callback([options, &action] { action = [options] { return merge(*options); }; });
}

}  // namespace paceline
