// paceline sweep SPEC
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "run/plan_study.h"

namespace paceline {

namespace {

constexpr char kSweepFooter[] = R"(Examples:
  paceline sweep sweeps/quick.json --dry-run            # points, and what is missing and why
  paceline sweep sweeps/quick.json                      # runs what is missing, prints the table
  paceline sweep sweeps/quick.json --set epochs=1 --set gpus=1,2 --repeats 5 --results /tmp/r
  paceline sweep study.json --until-precision 2% --max-gpu-hours 20    # runs where they are needed

Records go to RESULTS/NAME; a second call runs only what is missing or failed, and says why.
Exit codes: 0 all runs that this machine can make are done, 1 some failed, 64 or 65 a bad spec, 130 or 143 stopped.)";

struct SweepArguments : SweepOptions {
  bool json = false, all = false, no_report = false, verbose = false;
};

// The table of what is there, then what failed. A report that cannot be made hides no failure.
int conclude(const SweepArguments& options, const StudyPlan& plan, const RunnerResult& result,
             Screen& screen) {
  const std::size_t done = runs_in_state(plan, RunState::done);
  const bool some = result.completed > 0 || done > 0, reports = !options.no_report;
  try {
    if (some && result.completed + result.failed == 0 && reports && !options.verbose) {
      screen.line(fmt::format("paceline: all {} are done; see paceline report {}",
                              counted(static_cast<double>(done), "run"), plan.study.string()));
    } else if (some && reports) {
      print_study_report(plan.study, options.verbose);
    }
  } catch (const Error& error) {
    if (result.failed == 0) throw;
    screen.line(fmt::format("paceline: {}", error.what()));
  }
  if (const std::string other = other_build_line(plan); !other.empty()) {
    screen.line("paceline: warning: " + other);
  }
  if (const std::size_t absent = points_that_cannot_run(plan); absent > 0) {
    screen.line(
        fmt::format("paceline: {} of {} points cannot run here and were left out; add "
                    "--dry-run to see why",
                    absent, plan.expansion.points.size()));
  }
  if (result.failed == 0) return 0;
  if (result.not_started > 0) {
    screen.line(
        fmt::format("paceline: all {} runs failed, so {} more were not started; see a log, "
                    "mend the cause, and call it again",
                    result.failed, result.not_started));
    return 1;
  }
  screen.line(fmt::format("paceline: {} of {} runs failed; the same command tries them again",
                          result.failed, result.failed + result.completed));
  return 1;
}

int sweep(const SweepArguments& options) {
  if (const std::string note = set_aside_note(); !note.empty()) print_note("{}\n", note);
  Sweep sweep(options);
  if (options.dry_run) {
    sweep.look_at();
    const std::size_t most = options.all ? kAllPoints : kShownPoints;
    print_text(options.json ? json_text(plan_json(sweep.plan()), 2) + "\n"
                            : plan_text(sweep.plan(), style_of_output().width, most));
    return 0;
  }
  Screen screen;
  const RunnerResult result = sweep.run(screen);
  if (result.stopped_by == 0) return conclude(options, sweep.plan(), result, screen);
  screen.line(fmt::format("paceline: stopped by {}; the same command resumes where it was",
                          strsignal(result.stopped_by)));
  return 128 + result.stopped_by;
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("sweep", "Run the missing runs of a study on this machine");
  auto options = std::make_shared<SweepArguments>();
  add_study_options(*verb, *options);
  add_value(*verb, "--timeout SECONDS", options->timeout, "limit of one run")
      ->check(CLI::PositiveNumber);
  CLI::Option* dry_run = verb->add_flag("--dry-run", options->dry_run,
                                        "print the points and what is missing, run nothing");
  verb->add_flag("--json", options->json, "with --dry-run, print JSON")->needs(dry_run);
  verb->add_flag("--all", options->all, "with --dry-run, list every point of a large study")
      ->needs(dry_run);
  for (const auto& [option, hours] : {std::pair("--max-gpu-hours", &options->max_gpu_hours),
                                      std::pair("--max-core-hours", &options->max_core_hours)}) {
    verb->add_option(option, *hours, "with --until-precision, run no more than this allows")
        ->needs("--until-precision")
        ->type_name("HOURS")
        ->check(CLI::PositiveNumber);
  }
  verb->add_flag("--no-report", options->no_report, "make no table and plots at the end");
  verb->add_flag("--verbose", options->verbose,
                 "print all of the report, even if nothing was to do");
  verb->footer(kSweepFooter);
  verb->callback([options, &action] { action = [options] { return sweep(*options); }; });
}

}  // namespace paceline
