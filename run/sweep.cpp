#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/plan_study.h"

namespace paceline {

namespace {

// What is named on the command line has to be here; what a spec names may be left out.
void refuse_unbuilt_overrides(const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) {
    const auto equals = assignment.find('=');
    const std::string axis = assignment.substr(0, equals);
    if (axis != "backend" && axis != "device") continue;
    for (const std::string& word : split(assignment.substr(equals + 1), ',')) {
      const Name name = find_name(axis, word, "--set " + assignment);
      if (name.built) continue;
      throw usage_error(fmt::format("{} {} is not built here", axis, word), "--set " + assignment,
                        name.reason);
    }
  }
}

}  // namespace

Sweep::Sweep(const SweepOptions& options) : options_(options) {
  plan_.spec = read_spec(options.spec);
  for (const std::string& assignment : options.set) override_axis(plan_.spec, assignment);
  const bool runs_here = !options.dry_run;
  if (runs_here && engine_is_here()) refuse_unbuilt_overrides(options.set);
  if (runs_here && !engine_is_here()) {
    throw usage_error("this build has no engine, so it can only plan a sweep", "",
                      "add --dry-run, or build with -DPACELINE_ENGINE=ON");
  }
  if (options.repeats > 0) plan_.spec.repeats = options.repeats;
  plan_.spec.control = plan_.spec.control || options.control;
  if (options.timeout > 0) plan_.spec.timeout_seconds = options.timeout;
  const TargetMachine machine{topology_of_machine().usable_cores(), true, reason_not_runnable};
  plan_.expansion = expand(plan_.spec, machine, runs_here ? Unbuilt::drop : Unbuilt::keep);
  plan_.study = std::filesystem::path(options.results) / plan_.spec.name;
  precision_ = read_target_precision(options, plan_.spec);
  for (const bool gpus : {true, false}) {
    const double hours = gpus ? options.max_gpu_hours : options.max_core_hours;
    if (hours <= 0) continue;
    check_budget_kind(plan_, gpus);
    precision_.max_hours = hours;
  }
  check_data_root(options.data, plan_.spec.workload, plan_.expansion.points);
  if (!options.data.empty()) {
    setenv("PACELINE_DATA", std::filesystem::absolute(options.data).c_str(), 1);
  }
  if (precision_.share > 0) {
    plan_.expansion.notes.push_back(fmt::format(
        "after these, a point goes on while its interval is wider than ±{:g} %, up to {} repeats",
        precision_.share * 100, precision_.most));
  }
  resolved_ = resolve_points(plan_, runs_here ? AbsentData::refused : AbsentData::unlike_any);
}

StoreContent Sweep::look_at(int repeats) {
  return look_at_store(
      plan_, resolved_, options_.new_build,
      [&](const StoreContent&) { return unlike_this_machine(plan_); }, repeats);
}

RunnerResult Sweep::run(Screen& screen) {
  const StudyLock lock(plan_.study);
  UntilPrecise until(plan_, precision_);
  const auto next = [&] {
    const StoreContent store = look_at(until.most_repeats());
    return until.next(plan_.runs, store);
  };
  const bool is_until_precise = precision_.share > 0;
  if (is_until_precise) {
    plan_.runs = next();
  } else {
    look_at();
  }
  save_expected_runs(plan_);
  for (const std::string& line : resume_lines(plan_)) screen.line(line);
  RunnerSetup setup;
  setup.spec = &plan_.spec;
  setup.points = &plan_.expansion.points;
  setup.program = {this_program().string()};
  setup.line = [&](const std::string& text) { screen.line(text); };
  setup.status = [&](const std::string& text) { screen.status(text); };
  if (is_until_precise) {
    setup.more = next;
    setup.affordable = [&](const ScheduledRun& each) { return until.is_affordable(each); };
    setup.took = [&](const ScheduledRun& each, double seconds) { until.took(each, seconds); };
  }
  const RunnerResult result = run_study(setup, lock, plan_.runs);
  screen.clear();
  if (is_until_precise) {
    if (result.stopped_by != 0) next();  // the runs that it was stopped before
    for (const std::string& line : until.lines()) screen.line(line);
  }
  return result;
}

}  // namespace paceline
