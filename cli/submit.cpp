// paceline submit SPEC --site SITE
#include "run/submit.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/configuration.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr char kSubmitFooter[] = R"(Examples:
  paceline submit sweeps/nyu-cassava.json --site slurm/sites/generic-gpu.json --dry-run
  paceline submit study.json --site my-site.json --smoke --yes     # same scripts, few steps
  paceline submit study.json --site my-site.json --max-gpu-hours 200
  paceline submit study.json --site my-site.json --until-precision 2%    # again for the next wave

Called again it sends only what is missing or failed and in no queue, and says why. --dry-run prints
the table, writes the scripts to a folder that it names, and sends nothing. Exit codes: 0 all is
sent or done, 1 not confirmed, 64 or 65 a bad spec, profile or request, or Slurm's refusal.)";

// Those that have a task a replica, as a Slurm step starts them.
std::vector<std::string> backends_of_ranks() {
  const auto has_task = [](const Name& backend) { return backend.tasks == "replica"; };
  return mapped_if(known_names().backends, has_task, &Name::name);
}

int submit(const SubmitOptions& options, bool yes) {
  StudySubmitter submitter(options);
  if (options.dry_run) {
    print("{}", submitter.dry_run());
    return 0;
  }
  return submitter.submit(print_now, [yes] { return yes || confirm_cost(); }) ? 0 : 1;
}

}  // namespace

void add_submit(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("submit", "Submit the missing runs of a study to Slurm");
  auto options = std::make_shared<SubmitOptions>();
  auto yes = std::make_shared<bool>(false);
  add_study_options(*verb, *options);
  options->site = configuration().settings.site.value;
  add_setting(*verb, "--site NAME", options->site,
              "a site profile: a file, or the name of one that ships")
      ->required(options->site.empty() && !configuration().fault);
  add_value(*verb, "--max-gpu-hours HOURS", options->max_gpu_hours,
            "refuse to submit if the study may cost more")
      ->check(CLI::NonNegativeNumber);
  verb->add_option(
          "--fallback", options->fallback,
          "backend to try in the same job if the run's own cannot connect; the record says so")
      ->check(CLI::IsMember(backends_of_ranks()));
  verb->add_flag("--screen", options->screen,
                 "each job first looks which of its devices, nodes and links are slow");
  verb->add_flag("--dry-run", options->dry_run,
                 "print job arrays and cost, write the scripts, submit nothing");
  add_value(*verb, "--scripts FOLDER", options->scripts,
            "with --dry-run, write the scripts here [default: a folder in TMPDIR]");
  verb->add_flag("--data-elsewhere", options->data_elsewhere,
                 "the data set is not on this machine, but the jobs see it");
  verb->add_flag(
      "--smoke", options->smoke,
      "submit a test instead: each shape once, two steps, on GPUs if the profile has some");
  CLI::Option* wait = verb->add_flag(
      "--wait", options->wait, "submit in waves, as the queue has room, until all runs are sent");
  add_setting(*verb, "--every SECONDS", options->every, "interval at which --wait checks the queue")
      ->needs(wait)
      ->check(CLI::Range(10, 86400));
  verb->add_flag("--yes", *yes, "do not ask for confirmation");
  verb->add_flag("--no-container", options->no_container, "ignore the profile's container");
  verb->add_flag("--no-collect", options->no_collect,
                 "do not submit the job that collects the study");
  verb->footer(kSubmitFooter);
  verb->callback(
      [options, yes, &action] { action = [options, yes] { return submit(*options, *yes); }; });
}

}  // namespace paceline
