// paceline status, cancel, collect

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/clock.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "slurm/job_check.h"
#include "slurm/study_view.h"
#include "slurm/submission.h"
#include "sweeps/inventory.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr int kFewestSeconds = 10;  // a scheduler serves everybody

void add_study(CLI::App& verb, std::string& folder) {
  verb.add_option("study", folder, "a study's folder (results/local/NAME)")->required();
}

fs::path study_at(const std::string& folder) {
  return fs::absolute(folder).lexically_normal();
}

struct StatusOptions {
  std::string study;
  bool watch = false, json = false, all = false;
  int every = 60;
};

void print_status(const StatusOptions& options, const std::vector<RunView>& runs,
                  const std::optional<JobEnergy>& energy) {
  if (options.json) {
    Json json = status_json(runs);
    if (energy) {
      json["slurm_energy"] = {
          {"plugin", energy->plugin}, {"joules", energy->joules}, {"jobs", energy->elements}};
    }
    print("{}\n", json_text(json, 2));
  } else {
    print("{}: {} at {}\n{}", options.study, phases_text(runs), utc_time_stamp(),
          status_text(runs, options.all ? kAllPoints : kShownPoints));
    if (energy) print_text(energy->text() + '\n');
  }
  flush_output();
}

bool is_going_on(const std::vector<RunView>& runs) {
  return runs_in_phase(runs, RunPhase::running) + runs_in_phase(runs, RunPhase::pending) > 0;
}

int status(const StatusOptions& options) {
  const fs::path study = study_at(options.study);
  const SlurmCommands slurm(environment_of_process());
  while (true) {
    const Journal journal(study);
    need_submissions(journal, study);
    const std::vector<RunView> runs = look_at_study(study, journal, slurm).runs;
    print_status(options, runs, ask_energy(slurm, journal.jobs()));
    const bool done = runs_in_phase(runs, RunPhase::done) == runs.size();
    if (!options.watch || !is_going_on(runs)) return done || is_going_on(runs) ? 0 : 1;
    const timespec pause{options.every, 0};
    nanosleep(&pause, nullptr);
  }
}

int cancel(const std::string& folder) {
  const fs::path study = study_at(folder);
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

int collect(const std::string& folder, bool verbose) {
  const fs::path study = study_at(folder);
  const Journal journal(study);
  need_submissions(journal, study);
  const SlurmCommands slurm(environment_of_process());
  const StudyNow now = look_at_study(study, journal, slurm);
  const std::size_t lost = record_lost_runs(study, now.runs);
  const auto& records = now.store.records;
  const bool some = std::any_of(records.begin(), records.end(),
                                [](const Record& record) { return record->completed(); });
  if (some) print_study_report(study, verbose);
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

void add_status(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("status", "Show the progress of a submitted study");
  auto options = std::make_shared<StatusOptions>();
  add_study(*verb, options->study);
  verb->add_flag("--watch", options->watch, "refresh until the queue is empty");
  verb->add_flag("--json", options->json, "print JSON");
  verb->add_flag("--all", options->all, "list every point of a large study");
  add_setting(*verb, "--every SECONDS", options->every, "refresh interval of --watch")
      ->check(CLI::Range(kFewestSeconds, 86400));
  verb->footer(
      "In bars, a mark a repeat: # done, > running, . pending, x failed, - not submitted,\n"
      "? not known (the next submit looks for it in the queue).\n"
      "Exits with 1 if nothing is in the queue and some runs failed or were never submitted.\n"
      "Examples:\n  paceline status results/local/quick\n"
      "  paceline status results/local/quick --watch --every 300");
  verb->callback([options, &action] { action = [options] { return status(*options); }; });
}

void add_cancel(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("cancel", "Cancel a study's jobs in Slurm");
  auto study = std::make_shared<std::string>();
  add_study(*verb, *study);
  verb->footer(
      "Records stay; what was running starts anew.\n"
      "Example:\n  paceline cancel results/local/quick");
  verb->callback([study, &action] { action = [study] { return cancel(*study); }; });
}

void add_collect(CLI::App& app, Action& action) {
  CLI::App* verb =
      app.add_subcommand("collect", "Collect the records of a submitted study and print its table");
  auto study = std::make_shared<std::string>();
  auto verbose = std::make_shared<bool>(false);
  add_study(*verb, *study);
  verb->add_flag("--verbose", *verbose, "print all of the report");
  verb->footer(
      "Writes down why runs ended that left no record, before Slurm forgets it; prints the table\n"
      "and what the reference runs say of the nodes. Exits with 1 if some runs are not done.\n"
      "Example:\n  paceline collect results/local/quick");
  verb->callback([=, &action] { action = [=] { return collect(*study, *verbose); }; });
}

}  // namespace paceline
