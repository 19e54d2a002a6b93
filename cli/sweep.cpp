// paceline sweep SPEC
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/report.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/screen.h"
#include "sweeps/runner.h"
#include "sweeps/study_plan.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kSweepFooter[] = R"(Examples:
  paceline sweep sweeps/quick.json --dry-run            # points, and what is missing and why
  paceline sweep sweeps/quick.json                      # runs what is missing, prints the table
  paceline sweep sweeps/quick.json --set epochs=1 --set gpus=1,2 --repeats 5 --results /tmp/r
  paceline sweep study.json --until-precision 2% --max-gpu-hours 20    # runs where they are needed

Records go to RESULTS/NAME; a second call runs only what is missing or failed, and says why.
Exit codes: 0 all runs that this machine can make are done, 1 some failed, 64 or 65 a bad spec, 130 or 143 stopped.)";

struct SweepOptions : StudyOptions {
  double timeout = 0;
  bool dry_run = false, json = false, all = false, no_report = false;
  double max_gpu_hours = 0, max_core_hours = 0;
};

// What is named on the command line has to be here; what a spec names may be left out.
void refuse_unbuilt_overrides(const SweepOptions& options) {
  for (const std::string& assignment : options.set) {
    const auto equals = assignment.find('=');
    const std::string axis = assignment.substr(0, equals);
    if (axis != "backend" && axis != "device") continue;
    for (const std::string& word : split(assignment.substr(equals + 1), ',')) {
      const Name name = find_name(axis, word, "--set " + assignment);
      if (name.built) continue;
      throw Error(ErrorKind::usage, fmt::format("{} {} is not built here", axis, word),
                  "--set " + assignment, name.reason);
    }
  }
}

// What is not built here cannot run here, but it can be planned.
StudyPlan make_plan(const SweepOptions& options) {
  StudyPlan plan;
  plan.spec = read_spec(options.spec);
  for (const std::string& assignment : options.set) override_axis(plan.spec, assignment);
  const bool runs_here = !options.dry_run;
  if (runs_here && engine_is_here()) refuse_unbuilt_overrides(options);
  if (runs_here && !engine_is_here()) {
    throw Error(ErrorKind::usage, "this build has no engine, so it can only plan a sweep", "",
                "add --dry-run, or build with -DPACELINE_ENGINE=ON");
  }
  if (options.repeats > 0) plan.spec.repeats = options.repeats;
  plan.spec.control = plan.spec.control || options.control;
  if (options.timeout > 0) plan.spec.timeout_seconds = options.timeout;
  const TargetMachine machine{topology_of_machine().usable_cores(), true, reason_not_runnable};
  plan.expansion = expand(plan.spec, machine, runs_here ? Unbuilt::drop : Unbuilt::keep);
  plan.study = fs::path(options.results) / plan.spec.name;
  return plan;
}

void report(const StudyPlan& plan) {
  ReportOptions options;
  options.out = plan.study / "report";
  options.style = style_of_output();
  OutputStream output;
  write_report({plan.study}, options, output);
}

// The table of what is there, then what failed. A report that cannot be made hides no failure.
int conclude(const SweepOptions& options, const StudyPlan& plan, const RunnerResult& result,
             Screen& screen) {
  const bool some = result.completed > 0 || runs_in_state(plan, RunState::done) > 0;
  try {
    if (some && !options.no_report) report(plan);
  } catch (const Error& error) {
    if (result.failed == 0) throw;
    screen.line(fmt::format("paceline: {}", error.what()));
  }
  if (const std::size_t absent = points_that_cannot_run(plan); absent > 0) {
    screen.line(
        fmt::format("paceline: {} of {} points cannot run here and were left out; add "
                    "--dry-run to see why",
                    absent, plan.expansion.points.size()));
  }
  if (result.failed == 0) return 0;
  screen.line(fmt::format("paceline: {} of {} runs failed; the same command tries them again",
                          result.failed, result.failed + result.completed));
  return 1;
}

StoreContent look_at(StudyPlan& plan, const std::vector<Resolved>& resolved,
                     const SweepOptions& options, int repeats = 0) {
  return look_at_store(
      plan, resolved, options.new_build,
      [&](const StoreContent&) { return unlike_this_machine(plan); }, repeats);
}

TargetPrecision make_target_precision(const SweepOptions& options, const StudyPlan& plan,
                                      TargetPrecision precision) {
  for (const bool gpus : {true, false}) {
    const double hours = gpus ? options.max_gpu_hours : options.max_core_hours;
    if (hours <= 0) continue;
    check_budget_kind(plan, gpus);
    precision.max_hours = hours;
  }
  return precision;
}

int run(const SweepOptions& options, StudyPlan& plan, const std::vector<Resolved>& resolved,
        const TargetPrecision& precision) {
  const StudyLock lock(plan.study);
  UntilPrecise until(plan, precision);
  const auto next = [&] {
    const StoreContent store = look_at(plan, resolved, options, until.most_repeats());
    return until.next(plan.runs, store);
  };
  if (precision.share > 0) {
    plan.runs = next();
  } else {
    look_at(plan, resolved, options);
  }
  save_expected_runs(plan);
  Screen screen;
  for (const std::string& line : resume_lines(plan)) screen.line(line);
  RunnerSetup setup;
  setup.spec = &plan.spec;
  setup.points = &plan.expansion.points;
  setup.program = {this_program().string()};
  setup.line = [&](const std::string& text) { screen.line(text); };
  setup.status = [&](const std::string& text) { screen.status(text); };
  if (precision.share > 0) {
    setup.more = next;
    setup.affordable = [&](const ScheduledRun& each) { return until.is_affordable(each); };
    setup.took = [&](const ScheduledRun& each, double seconds) { until.took(each, seconds); };
  }
  const RunnerResult result = run_study(setup, lock, plan.runs);
  screen.clear();
  if (precision.share > 0) {
    if (result.stopped_by != 0) next();  // the runs that it was stopped before
    for (const std::string& line : until.lines()) screen.line(line);
  }
  if (result.stopped_by == 0) return conclude(options, plan, result, screen);
  screen.line(fmt::format("paceline: stopped by {}; the same command resumes where it was",
                          strsignal(result.stopped_by)));
  return 128 + result.stopped_by;
}

int sweep(const SweepOptions& options) {
  if (const std::string note = set_aside_note(); !note.empty()) print_note("{}\n", note);
  StudyPlan plan = make_plan(options);
  const TargetPrecision precision =
      make_target_precision(options, plan, read_target_precision(options, plan.spec));
  if (!options.data.empty()) {
    check_data_root(plan.spec.workload, options.data);
    setenv("PACELINE_DATA", options.data.c_str(), 1);
  }
  if (precision.share > 0) {
    plan.expansion.notes.push_back(fmt::format(
        "after these, a point goes on while its interval is wider than ±{:g} %, up to {} repeats",
        precision.share * 100, precision.most));
  }
  const auto resolved =
      resolve_points(plan, options.dry_run ? AbsentData::unlike_any : AbsentData::refused);
  if (!options.dry_run) return run(options, plan, resolved, precision);
  look_at(plan, resolved, options);
  if (options.json) {
    print("{}\n", json_text(plan_json(plan), 2));
  } else {
    print("{}", plan_text(plan, style_of_output().width, options.all ? kAllPoints : kShownPoints));
  }
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("sweep", "Run the missing runs of a study on this machine");
  auto options = std::make_shared<SweepOptions>();
  add_study_options(*verb, *options);
  verb->add_option("--timeout", options->timeout, "limit of one run")
      ->type_name("SECONDS")
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
  verb->footer(kSweepFooter);
  verb->callback([options, &action] { action = [options] { return sweep(*options); }; });
}

}  // namespace paceline
