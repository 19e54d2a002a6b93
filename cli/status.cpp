// paceline status STUDY
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "engine/core/clock.h"
#include "engine/core/json_text.h"
#include "engine/core/output.h"
#include "slurm/job_energy.h"
#include "slurm/study_status.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr int kFewestSeconds = 10;  // a scheduler serves everybody

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
  const fs::path study = fs::absolute(options.study).lexically_normal();
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

}  // namespace

void add_status(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("status", "Show the progress of a submitted study");
  auto options = std::make_shared<StatusOptions>();
  verb->add_option("study", options->study, "a study's folder (results/local/NAME)")->required();
  verb->add_flag("--watch", options->watch, "refresh until the queue is empty");
  verb->add_flag("--json", options->json, "print JSON");
  verb->add_flag("--all", options->all, "list every point of a large study");
  verb->add_option("--every", options->every, "refresh interval of --watch")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(kFewestSeconds, 86400));
  verb->footer(
      "In bars, a mark a repeat: # done, > running, . pending, x failed, - not submitted,\n"
      "? not known (the next submit looks for it in the queue).\n"
      "Exits with 1 if nothing is in the queue and some runs failed or were never submitted.\n"
      "Examples:\n  paceline status results/local/quick\n"
      "  paceline status results/local/quick --watch --every 300");
  verb->callback([options, &action] { action = [options] { return status(*options); }; });
}

}  // namespace paceline
