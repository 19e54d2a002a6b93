// paceline sweep SPEC
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/report.h"
#include "cli/resolve.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/terminal.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "sweeps/eta.h"
#include "sweeps/runner.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kFooter[] = R"(Examples:
  paceline sweep sweeps/quick.json --dry-run            # points, and what is missing and why
  paceline sweep sweeps/quick.json                      # runs what is missing, prints the table
  paceline sweep sweeps/quick.json --set epochs=1 --set gpus=1,2 --repeats 5 --results /tmp/r

Records go to RESULTS/NAME; a second call runs only what is missing or failed, and says why.)";

struct SweepOptions {
  std::string spec, results = "results/local", data;
  std::vector<std::string> set;
  int repeats = 0;
  double timeout = 0;
  bool dry_run = false, json = false, new_build = false, no_report = false;
};

// A spec, expanded and compared with what is on disk.
struct Prepared {
  Spec spec;
  Expansion expansion;
  std::vector<RunStatus> runs;
  fs::path study;
};

void refuse_unbuilt_overrides(const SweepOptions& options) {
  for (const std::string& assignment : options.set) {
    const auto equals = assignment.find('=');
    const std::string axis = assignment.substr(0, equals);
    if (axis != "backend" && axis != "device") continue;
    for (const std::string& word : split(assignment.substr(equals + 1), ',')) {
      const Name& name = find_name(axis, word, "--set " + assignment);
      if (name.built) continue;
      throw Error(ErrorKind::usage, fmt::format("{} {} is not built here", axis, word),
                  "--set " + assignment, name.reason);
    }
  }
}

Prepared prepare(const SweepOptions& options) {
  Prepared prepared{read_spec(options.spec), {}, {}, {}};
  for (const std::string& assignment : options.set) override_axis(prepared.spec, assignment);
  refuse_unbuilt_overrides(options);
  if (options.repeats) prepared.spec.repeats = options.repeats;
  if (options.timeout > 0) prepared.spec.timeout_seconds = options.timeout;
  prepared.expansion = expand(prepared.spec, topology_of_machine().usable_cores());
  prepared.study = fs::path(options.results) / prepared.spec.name;
  std::vector<Resolved> resolved;
  for (const PlannedPoint& point : prepared.expansion.points) {
    const ResolvedRun run = resolve_run(prepared.spec.workload, point.parameters);
    resolved.push_back({run.identity, run.data_hash, run.build});
  }
  const StoreContent store =
      fs::exists(prepared.study) ? load_store(prepared.study) : StoreContent{};
  prepared.runs = take_inventory(prepared.expansion.points,
                                 schedule(prepared.expansion.points.size(), prepared.spec.repeats,
                                          prepared.spec.interleaved, prepared.spec.seed),
                                 store, resolved, options.new_build);
  return prepared;
}

std::size_t count(const std::vector<RunStatus>& runs, RunState state) {
  return static_cast<std::size_t>(std::count_if(
      runs.begin(), runs.end(), [&](const RunStatus& run) { return run.state == state; }));
}

const char* name_of(RunState state) {
  switch (state) {
    case RunState::done:
      return "done";
    case RunState::missing:
      return "missing";
    case RunState::failed:
      return "run again";
    case RunState::changed:
      return "run again";
  }
  return "?";
}

// One line a point: how many repeats are done, and why others are not.
std::string state_of_point(const Prepared& prepared, std::size_t index) {
  std::size_t done = 0;
  std::vector<std::string> reasons;
  for (const RunStatus& status : prepared.runs) {
    if (status.run.point != index) continue;
    if (status.state == RunState::done) {
      ++done;
    } else if (status.why != "no record") {
      reasons.push_back(fmt::format("repeat {} {}", status.run.repeat, status.why));
    }
  }
  std::string text = fmt::format("{} of {} done", done, prepared.spec.repeats);
  if (!reasons.empty()) text += "; " + join(reasons, "; ");
  return text;
}

std::optional<double> estimate(const Prepared& prepared) {
  Eta eta;
  std::vector<std::size_t> waiting;
  for (const RunStatus& status : prepared.runs) {
    if (status.state == RunState::done) {
      eta.add(status.run.point, status.seconds);
    } else {
      waiting.push_back(status.run.point);
    }
  }
  return eta.remaining(waiting);
}

void print_json(const Prepared& prepared) {
  Json points = Json::array();
  for (const PlannedPoint& planned : prepared.expansion.points) {
    Json parameters;
    for (const auto& [name, value] : planned.parameters.values()) {
      parameters[name] = std::visit([](const auto& v) { return Json(v); }, value);
    }
    points.push_back({{"point", planned.point.text()},
                      {"nodes", planned.layout.nodes},
                      {"ntasks", planned.layout.ntasks},
                      {"cpus_per_task", planned.layout.cpus_per_task},
                      {"gpus", planned.layout.gpus},
                      {"parameters", parameters}});
  }
  Json runs = Json::array();
  for (const RunStatus& status : prepared.runs) {
    runs.push_back({{"point", prepared.expansion.points[status.run.point].point.text()},
                    {"repeat", status.run.repeat},
                    {"state", status.state == RunState::done ? "done" : "to run"},
                    {"why", status.why}});
  }
  const Json out = {{"study", prepared.spec.name},
                    {"workload", prepared.spec.workload},
                    {"repeats", prepared.spec.repeats},
                    {"seed", prepared.spec.seed},
                    {"points", points},
                    {"runs", runs},
                    {"notes", prepared.expansion.notes}};
  fmt::print("{}\n", out.dump(2));
}

void print_plan(const Prepared& prepared, const SweepOptions& options) {
  const Spec& spec = prepared.spec;
  fmt::print("{}: {} points x {} repeats of {}, {} order (seed {})\n", spec.name,
             prepared.expansion.points.size(), spec.repeats, spec.workload,
             spec.interleaved ? "interleaved" : "sequential", spec.seed);
  for (const std::string& note : prepared.expansion.notes) fmt::print("note: {}\n", note);
  std::size_t width = 5;
  for (const PlannedPoint& p : prepared.expansion.points) {
    width = std::max(width, p.point.text().size());
  }
  fmt::print("\n{:>5} {:>6} {:>13} {:>4}  {:<{}}  state\n", "nodes", "ntasks", "cpus-per-task",
             "gpus", "point", width);
  for (std::size_t i = 0; i < prepared.expansion.points.size(); ++i) {
    const PlannedPoint& p = prepared.expansion.points[i];
    fmt::print("{:>5} {:>6} {:>13} {:>4}  {:<{}}  {}\n", p.layout.nodes, p.layout.ntasks,
               p.layout.cpus_per_task, p.layout.gpus, p.point.text(), width,
               state_of_point(prepared, i));
  }
  const std::size_t to_run = prepared.runs.size() - count(prepared.runs, RunState::done);
  const auto seconds = estimate(prepared);
  fmt::print("\n{} of {} runs to make{}; records in {}\n", to_run, prepared.runs.size(),
             seconds && to_run ? ", about " + format_seconds(*seconds) : "",
             prepared.study.string());
  if (options.data.empty()) return;
  fmt::print("data: {}\n", options.data);
}

// Why each run is made, before the first one.
void explain_resume(const Prepared& prepared, const std::function<void(const std::string&)>& line) {
  for (const std::string& note : prepared.expansion.notes) line("note: " + note);
  const std::size_t done = count(prepared.runs, RunState::done);
  line(fmt::format("{}: {} runs, {} done already, {} to make", prepared.spec.name,
                   prepared.runs.size(), done, prepared.runs.size() - done));
  const auto other = std::count_if(prepared.runs.begin(), prepared.runs.end(),
                                   [](const RunStatus& run) { return run.other_build; });
  if (other > 0) {
    line(fmt::format(
        "warning: {} of the done runs are of another build; --new-build runs them again", other));
  }
  if (done == 0 && count(prepared.runs, RunState::missing) == prepared.runs.size()) return;
  for (const RunStatus& status : prepared.runs) {
    if (status.state == RunState::done) continue;
    line(fmt::format("{}: {} repeat {}: {}", name_of(status.state),
                     prepared.expansion.points[status.run.point].point.text(), status.run.repeat,
                     status.why));
  }
}

// Lines to standard error; on a terminal the current state is one line that is written over.
class Screen {
 public:
  void line(const std::string& text) {
    clear();
    fmt::print(stderr, "{}\n", text);
  }
  void status(const std::string& text) {
    if (!moving_) return;
    clear();
    fmt::print(stderr, "{}", text);
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }

 private:
  bool moving_ = is_terminal(STDERR_FILENO);
  bool shown_ = false;
};

void report(const Prepared& prepared) {
  ReportOptions options;
  options.out = prepared.study / "report";
  write_report({prepared.study}, options, std::cout);
}

int sweep(const SweepOptions& options) {
  if (!options.data.empty()) setenv("PACELINE_DATA", options.data.c_str(), 1);
  const Prepared prepared = prepare(options);
  if (options.dry_run) {
    options.json ? print_json(prepared) : print_plan(prepared, options);
    return 0;
  }
  Screen screen;
  RunnerSetup setup;
  setup.spec = &prepared.spec;
  setup.points = &prepared.expansion.points;
  setup.study = prepared.study;
  setup.program = {this_program().string()};
  setup.timeout_seconds = prepared.spec.timeout_seconds;
  setup.line = [&](const std::string& text) { screen.line(text); };
  setup.status = [&](const std::string& text) { screen.status(text); };
  explain_resume(prepared, setup.line);
  const RunnerResult result = run_study(setup, prepared.runs);
  screen.clear();
  if (result.stopped_by) {
    screen.line(fmt::format("stopped by signal {}; the same command goes on where it was",
                            result.stopped_by));
    return 128 + result.stopped_by;
  }
  const bool any = result.completed > 0 || count(prepared.runs, RunState::done) > 0;
  if (!options.no_report && any) report(prepared);
  if (result.failed > 0) {
    screen.line(fmt::format("paceline: {} of {} runs failed; the same command tries them again",
                            result.failed, result.failed + result.completed));
    return 1;
  }
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("sweep", "Run a study, or what is missing of it");
  auto options = std::make_shared<SweepOptions>();
  verb->add_option("spec", options->spec, "a sweep spec (sweeps/*.json)")->required();
  verb->add_option("--results", options->results, "where studies lie")->capture_default_str();
  verb->add_option("--data", options->data, "folder with the data sets' folders (e.g. data)");
  verb->add_option("--set", options->set, "axis=value or axis=v1,v2: instead of what the spec says")
      ->expected(1)
      ->take_all();
  verb->add_option("--repeats", options->repeats, "runs of each point")->check(CLI::Range(1, 1000));
  verb->add_option("--timeout", options->timeout, "seconds that one run may take")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--dry-run", options->dry_run, "only print the points, and what is missing");
  verb->add_flag("--json", options->json, "with --dry-run: machine-readable");
  verb->add_flag("--new-build", options->new_build, "run again what another build recorded");
  verb->add_flag("--no-report", options->no_report, "no table and plots at the end");
  verb->footer(kFooter);
  verb->callback([options, &action] { action = [options] { return sweep(*options); }; });
}

}  // namespace paceline
