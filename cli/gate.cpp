// paceline gate: has it got worse?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <memory>

#include "analysis/gate/render.h"
#include "analysis/plan/design.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "run/gate_runs.h"
#include "run/plan_study.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kGateFooter[] = R"(Examples:
  paceline gate --baseline nightly/quick --current results/local/quick
  paceline gate --baseline nightly/quick --current results/local/quick --rerun ./old/paceline
  paceline gate --ab ./old/paceline ./new/paceline sweeps/quick.json --out ab --junit gate.xml
  paceline gate --ab ./old/paceline ./new/paceline sweeps/quick.json --max-rounds 20
  paceline gate --aa sweeps/quick.json           # steady enough? thresholds from its own noise
  paceline gate --baseline before.json --current after.json    # Google Benchmark's JSON

Exit codes: 0 pass, 1 regression, 2 undecided, 64 or 65 bad input, 130 or 143 stopped.
What each verdict needs: docs/gate.md)";

struct GateArguments {
  std::vector<std::string> baseline, current, ab;
  std::string aa, rerun, current_program, data;
  std::map<Quantity, std::string> thresholds;
  std::vector<std::string> only;
  std::string junit, markdown;
  GateRuns runs;
  DocumentArguments output;
  bool force = false, github = false;
  bool rounds_given = false, most_given = false;
};

Quantity parse_quantity(const std::string& key) {
  std::vector<std::string> known;
  for (const QuantityInfo& info : quantities()) {
    if (info.key == key) return info.quantity;
    known.emplace_back(info.key);
  }
  throw Error(ErrorKind::usage, "unknown quantity \"" + key + "\"", "--only",
              suggestion(key, known));
}

GateOptions make_options(const GateArguments& arguments) {
  GateOptions options;
  for (const auto& [quantity, text] : arguments.thresholds) {
    options.thresholds[quantity] = parse_threshold(text, threshold_option(quantity_info(quantity)));
  }
  for (const std::string& key : arguments.only) options.quantities.insert(parse_quantity(key));
  return options;
}

void refuse_unlike_machines(const Side& baseline, const Side& current, bool force,
                            std::vector<std::string>& notes) {
  const auto differences = unlike_machines(baseline, current);
  if (differences.empty()) return;
  if (!force) {
    throw Error(ErrorKind::input, "runs of different machines cannot be compared",
                join(differences, "; "), "run both on the same kind of machine, or add --force");
  }
  notes.push_back("UNLIKE MACHINES: " + join(differences, "; "));
}

GateOutcome gate_stored(const GateArguments& arguments, const GateOptions& options) {
  const std::vector<fs::path> before(arguments.baseline.begin(), arguments.baseline.end());
  const std::vector<fs::path> now(arguments.current.begin(), arguments.current.end());
  const Side current = read_side("current", now), baseline = read_side("baseline", before, current);
  std::vector<std::string> notes;
  refuse_unlike_machines(baseline, current, arguments.force, notes);
  GateOutcome outcome{judge(baseline, current, options), 0};
  outcome.judgement.notes.insert(outcome.judgement.notes.begin(), notes.begin(), notes.end());
  if (arguments.rerun.empty() || outcome.judgement.verdict() == Verdict::pass) return outcome;
  if (arguments.current_program.empty() && !engine_is_here()) {
    throw Error(ErrorKind::usage, "this build has no engine, so it cannot run the current side",
                "--rerun", "use --current-binary with a build that has one");
  }
  const fs::path program =
      arguments.current_program.empty() ? this_program() : fs::path(arguments.current_program);
  return confirm(baseline, current, std::move(outcome.judgement), arguments.rerun, program,
                 arguments.runs, options);
}

GateOutcome gate_fresh(const GateArguments& arguments, const GateOptions& options) {
  if (!arguments.ab.empty()) {
    return gate_builds(arguments.ab[0], arguments.ab[1], arguments.ab[2], arguments.runs, options);
  }
  if (!engine_is_here()) {
    throw Error(ErrorKind::usage, "this build has no engine, so it cannot run a study", "--aa",
                "use a build with an engine: --ab PROGRAM PROGRAM SPEC");
  }
  return gate_builds(this_program(), this_program(), arguments.aa, arguments.runs, options);
}

GateSides load_sides(const GateArguments& arguments) {
  GateSides sides;
  if (arguments.ab.empty() && arguments.aa.empty()) {
    sides.baseline_place = join(arguments.baseline, ", ");
    sides.current_place = join(arguments.current, ", ");
    return sides;
  }
  const std::string self = this_program().string();
  return {arguments.runs.baseline, arguments.runs.current,
          arguments.ab.empty() ? self : arguments.ab[0],
          arguments.ab.empty() ? self : arguments.ab[1]};
}

OutputFile junit_file(const GateArguments& arguments) {
  return {arguments.junit, "--junit", "JUnit XML of a gate", is_gate_junit};
}

OutputFile markdown_file(const GateArguments& arguments) {
  return {arguments.markdown, "--markdown", "Markdown of a gate", is_gate_markdown};
}

void print_judgement(const Judgement& judgement, const GateArguments& arguments) {
  Document document = gate_document(judgement, load_sides(arguments));
  if (!arguments.aa.empty()) {
    const int rounds = arguments.runs.rounds;
    document.sections.push_back(proposals_section(propose_thresholds(judgement, rounds),
                                                  make_options(arguments).thresholds, rounds));
    document.sections.back().headline = steadiness_text(judgement);
  }
  print_documents({document}, arguments.output);
  const char* actions = std::getenv("GITHUB_ACTIONS");
  if (arguments.github || (actions && std::string(actions) == "true")) {
    // Standard output is one JSON document, where that was asked for.
    const bool is_text = output_options(arguments.output).format == Format::text;
    (is_text ? print_text : print_note_text)(gate_annotations(judgement));
  }
  flush_output();
}

void write_files(const Judgement& judgement, const GateArguments& arguments) {
  const GateSides sides = load_sides(arguments);
  if (!arguments.junit.empty()) junit_file(arguments).write(gate_junit(judgement, sides));
  if (!arguments.markdown.empty()) {
    markdown_file(arguments).write(to_markdown(gate_document(judgement, sides)));
  }
}

// The exit code. What is not a pass stays so, also where a file of it cannot be written.
int deliver(const Judgement& judgement, const GateArguments& arguments) {
  const int code = exit_code(judgement.verdict());
  print_judgement(judgement, arguments);
  try {
    write_files(judgement, arguments);
  } catch (const Error& error) {
    if (code == 0) throw;
    print_note("paceline: {}\n", error.what());
  }
  return code;
}

void check_arguments(const GateArguments& arguments) {
  const bool stored = !arguments.baseline.empty() || !arguments.current.empty();
  const int modes = stored + !arguments.ab.empty() + !arguments.aa.empty();
  const std::string ways = "give --baseline DIR --current DIR, --ab OLD NEW SPEC, or --aa SPEC";
  if (modes == 0) throw Error(ErrorKind::usage, "nothing to compare is given", "", ways);
  if (modes > 1) throw Error(ErrorKind::usage, "several kinds of gate are given at once", "", ways);
  if (stored && (arguments.baseline.empty() || arguments.current.empty())) {
    throw Error(
        ErrorKind::usage,
        fmt::format("there is no {}", arguments.baseline.empty() ? "--baseline" : "--current"), "",
        "give both");
  }
  const bool runs = !stored || !arguments.rerun.empty();
  const auto only_with_runs = [&](bool given, const char* option) {
    if (!given || runs) return;
    throw Error(ErrorKind::usage, "the option has no effect without fresh runs", option,
                "leave it out, or add --rerun OLD_BINARY");
  };
  only_with_runs(!arguments.runs.out.empty(), "--out");
  only_with_runs(arguments.rounds_given, "--rounds");
  only_with_runs(arguments.runs.until_decided, "--until-decided");
  if (arguments.most_given && !arguments.runs.until_decided) {
    throw Error(ErrorKind::usage, "a fixed number of rounds has no other limit", "--max-rounds",
                "add --until-decided");
  }
  only_with_runs(!arguments.data.empty(), "--data");
  only_with_runs(arguments.runs.timeout_seconds > 0, "--timeout");
  only_with_runs(!arguments.current_program.empty(), "--current-binary");
  // Found out before hours of runs, not after.
  if (!arguments.junit.empty()) junit_file(arguments).check();
  if (!arguments.markdown.empty()) markdown_file(arguments).check();
  if (!stored && arguments.force) {
    throw Error(ErrorKind::usage, "this option is for stored studies: fresh runs share a machine",
                "--force", "leave it out");
  }
  if (!stored) return;
  for (const auto& [given, option] : {std::pair(arguments.runs.control, "--control"),
                                      std::pair(!arguments.runs.set.empty(), "--set")}) {
    if (given)
      throw Error(ErrorKind::usage, "this option is for --ab and --aa", option, "leave it out");
  }
}

GateKind choose_kind(const GateArguments& arguments) {
  return {arguments.baseline.empty() || !arguments.rerun.empty(),
          arguments.runs.until_decided ? arguments.runs.max_rounds : 0};
}

int gate(const GateArguments& arguments) {
  check_arguments(arguments);
  output_options(arguments.output);  // refuses them before hours of runs
  if (!arguments.data.empty()) setenv("PACELINE_DATA", fs::absolute(arguments.data).c_str(), 1);
  const GateOptions options = make_options(arguments);
  const bool stored = !arguments.baseline.empty();
  const GateOutcome outcome =
      stored ? gate_stored(arguments, options) : gate_fresh(arguments, options);
  if (outcome.stopped_by != 0) {
    print_note("paceline: stopped by {}; there is no verdict\n", strsignal(outcome.stopped_by));
    return 128 + outcome.stopped_by;
  }
  Judgement judgement = outcome.judgement;
  if (judgement.verdict() == Verdict::pass) {
    judgement.sees = seen_slowdown(judgement, choose_kind(arguments));
  }
  if (!arguments.aa.empty()) {
    for (const Proposal& each : propose_thresholds(judgement, arguments.runs.rounds)) {
      if (each.threshold) judgement.proposed[each.quantity] = *each.threshold;
    }
  }
  return deliver(judgement, arguments);
}

void add_thresholds(CLI::App& verb, const std::shared_ptr<GateArguments>& arguments) {
  for (const QuantityInfo& info : quantities()) {
    verb.add_option(threshold_option(info), arguments->thresholds[info.quantity],
                    fmt::format("{} this much {} is a regression", info.heading,
                                info.more_is_worse ? "higher" : "lower"))
        ->default_str(fmt::format("{}", info.threshold))
        ->type_name("FRACTION");
  }
}

}  // namespace

void add_gate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "gate", "Judge whether performance got worse: pass, regression or undecided");
  auto arguments = std::make_shared<GateArguments>();
  GateRuns& runs = arguments->runs;
  verb->footer(kGateFooter);
  verb->add_option("--baseline", arguments->baseline,
                   "the studies to compare with, or Google Benchmark JSON")
      ->type_name("STUDY");
  verb->add_option("--current", arguments->current,
                   "the studies to judge, or Google Benchmark JSON")
      ->type_name("STUDY");
  verb->add_option("--ab", arguments->ab, "run both builds side by side")
      ->type_name("OLD NEW SPEC")
      ->expected(3);
  verb->add_option("--aa", arguments->aa, "run this build against itself, as a control")
      ->type_name("SPEC");
  verb->add_option("--rerun", arguments->rerun,
                   "the baseline's binary: run what does not pass again, both builds side by side")
      ->type_name("BINARY");
  verb->add_option("--current-binary", arguments->current_program,
                   "the current side's binary for --rerun, instead of this one")
      ->type_name("BINARY");
  CLI::Option* rounds =
      verb->add_option("--rounds", runs.rounds,
                       "a fixed number of fresh runs of each point and side; what does not pass is "
                       "run again")
          ->check(CLI::Range(3, 1000))
          ->capture_default_str();
  CLI::Option* until =
      verb->add_flag("--until-decided", runs.until_decided,
                     "go on in fresh rounds until every check is decided; valid however often it "
                     "looks [default: with --ab, without --rounds]")
          ->excludes(rounds);
  CLI::Option* most = verb->add_option("--max-rounds", runs.max_rounds,
                                       "of a gate until it is decided: end undecided after these")
                          ->excludes(rounds)
                          ->check(CLI::Range(3, 1000))
                          ->capture_default_str();
  verb->add_flag("--control", runs.control, "with --ab, also run the old build against itself");
  verb->add_option("--set", runs.set, "replace values of the spec (or AXIS=V1,V2; repeatable)")
      ->type_name("AXIS=VALUE")
      ->expected(1)
      ->take_all();
  verb->add_option("--data", arguments->data,
                   "folder that holds the data sets' folders (data/mnist is in data)")
      ->type_name("FOLDER");
  verb->add_option("--timeout", runs.timeout_seconds, "limit of one run")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  verb->add_option("--out", runs.out, "keep the records of fresh runs here")->type_name("FOLDER");
  add_thresholds(*verb, arguments);
  verb->add_option("--only", arguments->only, "judge only these quantities, separated by commas")
      ->type_name("QUANTITY")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_flag("--force", arguments->force, "compare runs of different machines, and say so");
  add_format_options(*verb, arguments->output);
  verb->add_option("--junit", arguments->junit, "write JUnit XML")->type_name("FILE");
  verb->add_option("--markdown", arguments->markdown, "write a Markdown summary")
      ->type_name("FILE");
  verb->add_flag("--github", arguments->github,
                 "print annotations for GitHub Actions [default: where GITHUB_ACTIONS is true]");
  verb->callback([arguments, rounds, until, most, &action] {
    arguments->rounds_given = rounds->count() > 0;
    arguments->most_given = most->count() > 0;
    arguments->runs.until_decided =
        until->count() > 0 || (!arguments->ab.empty() && !arguments->rounds_given);
    if (!arguments->aa.empty()) {
      arguments->runs.baseline = "first";
      arguments->runs.current = "second";
    }
    std::erase_if(arguments->thresholds, [](const auto& entry) { return entry.second.empty(); });
    action = [arguments] { return gate(*arguments); };
  });
}

}  // namespace paceline
