// paceline archive STUDY --out FILE
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/verb.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/archive/study_archive.h"
#include "run/version.h"

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

}  // namespace paceline
