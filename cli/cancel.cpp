// paceline cancel STUDY
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <set>

#include "cli/verb.h"
#include "engine/core/output.h"
#include "slurm/study_view.h"
#include "slurm/submission.h"
#include "sweeps/study_lock.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

int cancel(const std::string& folder) {
  const fs::path study = fs::absolute(folder).lexically_normal();
  need_submissions(Journal(study), study);
  const StudyLock lock(study);
  Journal journal(study);
  const SlurmCommands slurm(environment_of_process());
  find_unanswered(journal, slurm);
  const std::vector<RunView> runs = look_at_study(study, journal, slurm).runs;
  std::set<std::int64_t> jobs;
  for (const RunView& run : runs) {
    if (run.phase == RunPhase::pending || run.phase == RunPhase::running)
      jobs.insert(run.slurm.job);
  }
  if (jobs.empty()) {
    print("nothing of this study is in the queue\n");
    return 0;
  }
  const std::vector<std::int64_t> list(jobs.begin(), jobs.end());
  slurm.cancel(list);
  journal.cancelled(list);
  print("cancelled {} running and {} pending runs; submit resumes where they were\n",
        runs_in_phase(runs, RunPhase::running), runs_in_phase(runs, RunPhase::pending));
  return 0;
}

}  // namespace

void add_cancel(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("cancel", "Cancel a study's jobs in Slurm");
  auto study = std::make_shared<std::string>();
  verb->add_option("study", *study, "a study's folder (results/local/NAME)")->required();
  verb->footer(
      "Records stay; what was running starts anew.\n"
      "Example:\n  paceline cancel results/local/quick");
  verb->callback([study, &action] { action = [study] { return cancel(*study); }; });
}

}  // namespace paceline
