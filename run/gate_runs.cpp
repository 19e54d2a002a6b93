#include "run/gate_runs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "run/plan_study.h"
#include "sweeps/inventory.h"
#include "sweeps/runner.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// Where fresh runs go: a folder of the user's, or one that goes with this object.
class FreshRuns {
 public:
  explicit FreshRuns(const fs::path& out) : path_(out), is_ours_(out.empty()) {
    if (is_ours_) {
      std::string name = (fs::temp_directory_path() / "paceline-gate.XXXXXX").string();
      if (!mkdtemp(name.data())) {
        throw input_error("a folder for the runs cannot be created", name, "name one with --out");
      }
      path_ = name;
      return;
    }
    std::error_code ignored;
    if (fs::exists(out, ignored) && !fs::is_empty(out, ignored)) {
      throw usage_error("not an empty folder", "--out " + out.string(),
                        "name a new one, or judge what it holds with --baseline and --current");
    }
    make_folder(out);
  }
  ~FreshRuns() {
    std::error_code ignored;
    if (is_ours_) fs::remove_all(path_, ignored);
  }
  FreshRuns(const FreshRuns&) = delete;
  FreshRuns& operator=(const FreshRuns&) = delete;

  const fs::path& path() const { return path_; }

  // Its outcome. After any failure or signal the folder of ours is kept and named, as its logs say
  // why.
  GateOutcome of(const std::function<GateOutcome()>& gate) {
    const bool was_ours = is_ours_;
    try {
      GateOutcome outcome = gate();
      if (was_ours && !is_ours_) outcome.kept = path_;
      return outcome;
    } catch (const Error& error) {
      std::error_code ignored;
      if (!was_ours || fs::is_empty(path_, ignored)) throw;
      is_ours_ = false;
      throw Error(error.kind(), fmt::format("{}; the runs and their logs are kept in {}",
                                            error.what(), path_.string()));
    }
  }
  void add(const InterleavedRecords& result) {
    const auto has_failed = [](const StoreContent& side) {
      return !std::ranges::all_of(side.records, [](const Record& r) { return r->completed(); });
    };
    if (result.stopped_by != 0 || std::ranges::any_of(result.sides, has_failed)) is_ours_ = false;
  }

 private:
  fs::path path_;
  bool is_ours_;
};

// The old build against itself: a difference is the machine's, and then no verdict of this session
// can be trusted.
void apply_control(Judgement& judgement, const Side& old_side, const StoreContent& control,
                   const GateOptions& options) {
  const Side again = load_side("control", control);
  for (const bool forwards : {true, false}) {
    const Judgement itself =
        forwards ? judge(old_side, again, options) : judge(again, old_side, options);
    for (const Check& check : itself.checks) {
      if (check.verdict != Verdict::regression) continue;
      judgement.notes.push_back(
          fmt::format("the control, old against old, differs ({} of {}: {}): no verdict of these "
                      "runs can be trusted",
                      quantity_info(check.quantity).heading, check.subject, check.reason));
      for (Check& each : judgement.checks) {
        each.verdict = Verdict::undecided;
        each.reason = "the control differs too";
      }
      return;
    }
  }
  judgement.notes.push_back("the control, old against old, shows no difference");
}

// Nothing was measured of a side of which no run started, whatever the other takes.
void refuse_unstarted(const std::vector<StoreContent>& sides) {
  static const Pattern not_started("cannot be started|exit code 12[67]\\b");
  const auto did_not_start = [](const Record& record) {
    return not_started.find(record->reason).has_value();
  };
  for (const StoreContent& side : sides) {
    if (side.records.empty() || !std::ranges::all_of(side.records, did_not_start)) continue;
    throw input_error(
        fmt::format("no run started: {}", side.records[0]->reason),
        fs::path(side.records[0].where()).parent_path().parent_path().filename().string(),
        "check the command and what it needs");
  }
}

Judgement judge_runs(const InterleavedRecords& result, const GateRuns& runs,
                     const GateOptions& options, const std::string& baseline,
                     const std::string& current) {
  refuse_unstarted(result.sides);
  const Side before = load_side(baseline, result.sides[0]),
             now = load_side(current, result.sides[1]);
  Judgement judgement = judge(before, now, options);
  if (runs.control) apply_control(judgement, before, result.sides[2], options);
  return judgement;
}

// The points that a suspect needs: its own, and the one its serial fraction rests on.
std::set<std::string> needed_points(const Judgement& first, const Side& baseline) {
  std::set<std::string> names;
  for (const Check& check : first.checks) {
    if (check.verdict == Verdict::pass) continue;
    names.insert(check.subject);
    const Subject* subject = baseline.find(check.subject);
    if (subject && check.quantity == Quantity::serial_fraction) names.insert(subject->base);
  }
  return names;
}

std::string point_name(const InterleavedRuns& plan, const PlannedPoint& planned) {
  return subject_name(plan.name, plan.workload, planned.parameters, planned.point.text());
}

// Goes on with the points of the checks that more rounds can decide.
NextRound until_decided(const InterleavedRuns& plan, const GateRuns& runs,
                        const GateOptions& options) {
  return [&plan, &runs, &options](const std::vector<StoreContent>& records, int rounds,
                                  const std::function<void(const std::string&)>& line) {
    const std::string &baseline = plan.sides[0].name, &current = plan.sides[1].name;
    Judgement now = judge_runs({records}, runs, options, baseline, current);
    const auto left = std::erase_if(now.checks, [](const Check& check) {
      return check.verdict != Verdict::undecided || !check.more_rounds_help;
    });
    const std::set<std::string> wanted = needed_points(now, load_side(baseline, records[0]));
    std::set<std::size_t> points;
    for (std::size_t i = 0; i < plan.sides[0].points.size(); ++i) {
      const std::string name = point_name(plan, plan.sides[0].points[i]);
      if (wanted.contains(name) && rounds < runs.max_rounds) points.insert(i);
    }
    line(fmt::format("after {} rounds {} of {} checks are decided{}", rounds, left,
                     left + now.checks.size(),
                     points.empty() ? ""
                                    : fmt::format("; {} go{} on", counted(points.size(), "point"),
                                                  points.size() == 1 ? "es" : "")));
    return points;
  };
}

std::string suspects_line(const Judgement& first, std::size_t points, int rounds) {
  const std::size_t suspects =
      count_where(first.checks, [](const Check& check) { return check.verdict != Verdict::pass; });
  return fmt::format("{} of {} checks did not pass: {} fresh rounds of {} decide", suspects,
                     first.checks.size(), rounds, counted(points, "point"));
}

std::vector<ProgramSide> with_points(const InterleavedRuns& plan,
                                     const std::set<std::string>& wanted) {
  std::vector<ProgramSide> kept = plan.sides;
  for (ProgramSide& side : kept) {
    std::erase_if(side.points, [&](const PlannedPoint& planned) {
      return !wanted.contains(point_name(plan, planned));
    });
  }
  return kept;
}

int first_rounds(const GateRuns& runs) {
  if (!runs.until_decided) return runs.rounds;
  return std::min(static_cast<int>(kFewestSequentialRuns), runs.max_rounds);
}

// Its binary is not what differs.
[[noreturn]] void refuse_own_program(const char* option) {
  throw usage_error("a program of your own (workload command) has no binary to exchange", option,
                    "compare its commands: paceline gate --ab 'OLD COMMAND' 'NEW COMMAND' SPEC");
}

Spec read_pair_spec(const GatePair& pair) {
  if (!pair.spec.empty()) return read_spec(pair.spec);
  for (const std::string& program : {pair.old_program, pair.new_program}) {
    if (find_version(program).empty()) continue;
    throw usage_error(program + " is a build of Paceline, and builds need a spec", "--ab",
                      "add one, such as sweeps/quick.json");
  }
  const Json one_point = {{"name", "ab"},
                          {"workload", kCommandWorkload},
                          {"command", {"true"}},
                          {"directory", fs::current_path().string()},
                          {"axes", {{"gpus", {1}}}}};
  return parse_spec("ab", json_text(one_point));
}

// Before any run: a command whose program is not here would fail in each. What only the run knows
// (placeholders, a PATH of the spec's) is left to it.
void check_is_here(const std::vector<std::string>& words, const UserProgram& program) {
  const std::string& name = words.front();
  const bool own_path = std::ranges::any_of(
      program.environment, [](const auto& variable) { return variable.first == "PATH"; });
  if (own_path || !program.setup.empty() || name.find('{') != std::string::npos) return;
  const bool is_path = name.find('/') != std::string::npos;
  const bool is_here = is_path ? access((fs::path(program.directory) / name).c_str(), X_OK) == 0
                               : find_program(name, environment_of_process()).has_value();
  if (!is_here) {
    throw input_error(
        fmt::format("there is no program {} to run", name), "--ab",
        is_path ? "check its path and its permissions" : "check its name and the PATH");
  }
  static const Pattern interpreter("^(python[0-9.]*|(ba|da|z|k)?sh|perl|Rscript|julia|node)$");
  const bool has_script = words.size() > 1 &&
                          interpreter.find(fs::path(name).filename().string()) &&
                          words[1].find_first_of("-{") != 0;
  if (!has_script || path_exists(fs::path(program.directory) / words[1])) return;
  throw input_error(fmt::format("there is no script {} to run", words[1]), "--ab",
                    fmt::format("it is looked for in {}", program.directory));
}

// The spec's only program, started by another command.
std::shared_ptr<Spec> with_command(const Spec& spec, const std::string& command) {
  auto changed = std::make_shared<Spec>(spec);
  UserProgram& program = changed->programs.front();
  Json definition = Json::parse(program.definition);
  const std::vector<std::string> words = plain_words(command);
  if (program.shell || words.empty()) {
    definition["shell"] = true;
    definition["command"] = command;
    if (!program.shell && !program.setup.empty()) {
      definition["setup"] = shell_quote(program.setup);
    }
  } else {
    check_is_here(words, program);
    definition["command"] = words;
  }
  program = parse_program(program.name, json_text(definition));
  return changed;
}

void check_commands(const Spec& spec, const GatePair& pair) {
  if (spec.programs.size() == 1) return;
  throw usage_error(fmt::format("it has {} programs", spec.programs.size()), pair.spec.string(),
                    "compare two commands by a spec of one program");
}

InterleavedRuns make_plan(const GatePair& pair, const GateRuns& runs) {
  Spec spec = read_pair_spec(pair);
  spec.control = false;  // --control and --aa are the gate's own
  for (const std::string& assignment : runs.set) override_axis(spec, assignment);
  const TargetMachine machine{topology_of_machine().usable_cores(), true, reason_not_runnable};
  const bool is_own = spec.workload == kCommandWorkload;
  if (is_own && !engine_is_here()) {
    throw usage_error("this build has no engine, so it cannot run a program", "--ab",
                      "use one that has");
  }
  if (is_own && pair.has_commands) check_commands(spec, pair);
  const Expansion expansion =
      expand(spec, machine, engine_is_here() ? Unbuilt::drop : Unbuilt::keep);
  check_data_root(runs.data, spec.workload, expansion.points);
  if (engine_is_here()) {  // else it cannot know what the two builds have
    for (const std::string& note : expansion.notes) print_note("note: {}\n", note);
  }
  InterleavedRuns plan;
  plan.name = spec.name;
  plan.workload = spec.workload;
  const auto make_side = [&](const std::string& name, const std::string& program) {
    if (!is_own) return ProgramSide{name, fs::absolute(program), expansion.points};
    const auto own = pair.has_commands ? with_command(spec, program) : std::make_shared<Spec>(spec);
    return ProgramSide{name, this_program(), expand(*own, machine, Unbuilt::drop).points, own};
  };
  plan.sides = {make_side(runs.baseline, pair.old_program),
                make_side(runs.current, pair.new_program)};
  if (runs.control) plan.sides.push_back(make_side("control", pair.old_program));
  plan.rounds = first_rounds(runs);
  plan.seed = spec.seed;
  plan.timeout_seconds = runs.timeout_seconds > 0 ? runs.timeout_seconds : spec.timeout_seconds;
  return plan;
}

// A stored point as one that can be run: its name from the record, all parameters as they were.
PlannedPoint planned(const Subject& subject) {
  PlannedPoint point;
  point.parameters = subject.parameters;
  const std::string name =
      subject.name.substr(std::min(subject.name.size(), subject.workload.size() + 1));
  for (const std::string& word : split(name, ',')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !find_parameter(word.substr(0, equals))) continue;
    if (const Value* value = subject.parameters.find(word.substr(0, equals))) {
      point.point.set(word.substr(0, equals), *value);
    }
  }
  point.layout = make_layout(subject.parameters, subject.name);
  return point;
}

std::vector<StoreContent> load_records(const std::vector<RunnerSide>& sides) {
  return mapped(sides, [](const RunnerSide& side) { return load_store(side.study->path()); });
}

// The runs of the rounds from `first` to `last`.
std::vector<RunStatus> list_rounds(const InterleavedRuns& plan, int first, int last) {
  std::vector<RunStatus> runs;
  for (const ScheduledRun& run :
       schedule_sides(plan.sides.front().points.size(), plan.sides.size(), last, plan.seed)) {
    if (run.repeat >= first) runs.push_back({.run = run});
  }
  return runs;
}

GateOutcome run_pair(const GatePair& pair, const GateRuns& runs, const GateOptions& options,
                     FreshRuns& folder) {
  InterleavedRuns plan = make_plan(pair, runs);
  const auto describe = [&](const std::string& program) {
    return plan.workload == kCommandWorkload ? program : version_of_program(program, "--ab");
  };
  const std::string before = describe(pair.old_program), now = describe(pair.new_program);
  print_note("{}: {}\n{}: {}\n", runs.baseline, before, runs.current, now);
  GateOptions one_spec = options;
  one_spec.one_spec = true;
  if (runs.until_decided) {
    one_spec.stopping = Stopping::by_results;
    one_spec.most_rounds = static_cast<std::size_t>(runs.max_rounds);
    plan.next = until_decided(plan, runs, one_spec);
  }
  plan.folder = folder.path() / "first";
  InterleavedRecords result = run_interleaved(plan);
  folder.add(result);
  GateOutcome outcome;
  outcome.stopped_by = result.stopped_by;
  if (outcome.stopped_by != 0) return outcome;
  outcome.judgement = judge_runs(result, runs, one_spec, runs.baseline, runs.current);
  if (runs.until_decided) outcome.judgement.rounds = result.rounds;
  if (runs.until_decided || outcome.judgement.verdict() == Verdict::pass) return outcome;
  const auto wanted = needed_points(outcome.judgement, load_side(runs.baseline, result.sides[0]));
  print_note("{}\n", suspects_line(outcome.judgement, wanted.size(), runs.rounds));
  plan.sides = with_points(plan, wanted);
  plan.folder = folder.path() / "fresh";
  plan.seed += 1;
  result = run_interleaved(plan);
  folder.add(result);
  outcome.stopped_by = result.stopped_by;
  if (outcome.stopped_by != 0) return outcome;
  const GateOptions suspects = find_suspects(outcome.judgement, one_spec);
  settle(outcome.judgement, judge_runs(result, runs, suspects, runs.baseline, runs.current));
  return outcome;
}

GateOutcome run_suspects(const Side& baseline, const Side& current, Judgement first,
                         const fs::path& baseline_program, const fs::path& current_program,
                         const GateRuns& runs, const GateOptions& options, FreshRuns& folder) {
  GateOutcome outcome{std::move(first), 0};
  std::map<std::string, std::array<std::vector<PlannedPoint>, 2>> by_workload;
  const auto wanted = needed_points(outcome.judgement, baseline);
  for (const std::string& name : wanted) {
    const Subject *before = baseline.find(name), *now = current.find(name);
    if (!before || !now || before->workload.empty()) continue;
    if (before->workload == kCommandWorkload) refuse_own_program("--rerun");
    auto& points = by_workload[before->workload];
    points[0].push_back(planned(*before));
    points[1].push_back(planned(*now));
  }
  if (by_workload.empty()) {
    throw usage_error("none of the checks that did not pass can be run again", "--rerun",
                      "run benchmarks of other programs again yourself");
  }
  for (const fs::path& program : {baseline_program, current_program}) {
    version_of_program(program, "--rerun");
  }
  print_note("{}\n", suspects_line(outcome.judgement, wanted.size(), first_rounds(runs)));
  GateOptions suspects = find_suspects(outcome.judgement, options);
  if (runs.until_decided) {
    suspects.stopping = Stopping::by_results;
    suspects.most_rounds = static_cast<std::size_t>(runs.max_rounds);
  }
  for (const auto& [workload, points] : by_workload) {
    InterleavedRuns plan;
    plan.workload = workload;
    plan.sides = {{"baseline", fs::absolute(baseline_program), points[0]},
                  {"current", fs::absolute(current_program), points[1]}};
    plan.rounds = first_rounds(runs);
    if (runs.until_decided) plan.next = until_decided(plan, runs, suspects);
    plan.timeout_seconds = runs.timeout_seconds;
    plan.folder = folder.path() / workload;
    const InterleavedRecords result = run_interleaved(plan);
    folder.add(result);
    outcome.stopped_by = result.stopped_by;
    if (outcome.stopped_by != 0) return outcome;
    settle(outcome.judgement, judge_runs(result, runs, suspects, "baseline", "current"));
    if (runs.until_decided) {
      outcome.judgement.rounds = std::max(outcome.judgement.rounds, result.rounds);
    }
  }
  return outcome;
}

}  // namespace

GateOutcome gate_pair(const GatePair& pair, const GateRuns& runs, const GateOptions& options) {
  FreshRuns folder(runs.out);
  return folder.of([&] { return run_pair(pair, runs, options, folder); });
}

GateOutcome confirm(const Side& baseline, const Side& current, Judgement first,
                    const fs::path& baseline_program, const fs::path& current_program,
                    const GateRuns& runs, const GateOptions& options) {
  FreshRuns folder(runs.out);
  return folder.of([&] {
    return run_suspects(baseline, current, std::move(first), baseline_program, current_program,
                        runs, options, folder);
  });
}

InterleavedRecords run_interleaved(const InterleavedRuns& plan) {
  Spec spec;
  spec.name = plan.name;
  spec.workload = plan.workload;
  spec.timeout_seconds = plan.timeout_seconds;
  spec.sequential = static_cast<bool>(plan.next);
  std::vector<std::unique_ptr<StudyLock>> locks;
  std::vector<RunnerSide> sides;
  for (const ProgramSide& side : plan.sides) {
    locks.push_back(std::make_unique<StudyLock>(plan.folder / side.name));
    if (side.spec) {
      side.spec->timeout_seconds = spec.timeout_seconds;
      side.spec->sequential = spec.sequential;
    }
    sides.push_back({side.name,
                     {side.program.string()},
                     &side.points,
                     &locks.back()->folder(),
                     side.spec.get()});
  }
  Screen screen;
  RunnerSetup setup;
  setup.spec = &spec;
  setup.line = [&](const std::string& text) { screen.line(text); };
  setup.status = [&](const std::string& text) { screen.status(text); };
  InterleavedRecords result;
  result.rounds = plan.rounds;
  if (plan.next) {
    setup.more = [&] {
      const std::set<std::size_t> points =
          plan.next(load_records(sides), result.rounds, setup.line);
      if (points.empty()) return std::vector<RunStatus>();
      ++result.rounds;
      std::vector<RunStatus> runs = list_rounds(plan, result.rounds, result.rounds);
      std::erase_if(runs, [&](const RunStatus& each) { return !points.contains(each.run.point); });
      return runs;
    };
  }
  result.stopped_by = run_sides(setup, sides, list_rounds(plan, 1, plan.rounds)).stopped_by;
  screen.clear();
  result.sides = load_records(sides);
  return result;
}

}  // namespace paceline
