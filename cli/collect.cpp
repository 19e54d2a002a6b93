// paceline collect STUDY
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "analysis/report.h"
#include "cli/report_options.h"
#include "cli/verb.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "slurm/collection.h"
#include "slurm/study_status.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

void report(const fs::path& study) {
  ReportOptions options;
  options.out = study / "report";
  options.style = style_of_output();
  OutputStream output;
  write_report({study}, options, output);
}

int collect(const std::string& folder) {
  const fs::path study = fs::absolute(folder).lexically_normal();
  const Journal journal(study);
  need_submissions(journal, study);
  const SlurmCommands slurm(environment_of_process());
  const StudyNow now = look_at_study(study, journal, slurm);
  const std::size_t lost = record_lost_runs(study, now.runs);
  const auto& records = now.store.records;
  const bool some = std::any_of(records.begin(), records.end(),
                                [](const Record& record) { return record->completed(); });
  if (some) report(study);
  for (const std::string& line : reference_lines(study)) print("{}\n", line);
  print("{}\n", phases_text(now.runs));
  if (lost > 0) {
    print("{} ended without a record; one that says why was added for each\n",
          counted(lost, "run"));
  }
  const std::size_t done = runs_in_phase(now.runs, RunPhase::done);
  if (done == now.runs.size()) return 0;
  print("{}", status_text(now.runs));
  return 1;
}

}  // namespace

void add_collect(CLI::App& app, Action& action) {
  CLI::App* verb =
      app.add_subcommand("collect", "Collect the records of a submitted study and print its table");
  auto study = std::make_shared<std::string>();
  verb->add_option("study", *study, "a study's folder (results/local/NAME)")->required();
  verb->footer(
      "Writes down why runs ended that left no record, before Slurm forgets it; prints the table\n"
      "and what the reference runs say of the nodes. Exits with 1 if some runs are not done.\n"
      "Example:\n  paceline collect results/local/quick");
  verb->callback([study, &action] { action = [study] { return collect(*study); }; });
}

}  // namespace paceline
