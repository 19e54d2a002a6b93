// paceline gate: has it got worse?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "analysis/plan/design.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "run/gate_runs.h"

namespace paceline {

namespace {

constexpr char kGateFooter[] = R"(Examples:
  paceline gate --baseline nightly/quick --current results/local/quick
  paceline gate --baseline nightly/quick --current results/local/quick --rerun ./old/paceline
  paceline gate --ab ./old/paceline ./new/paceline sweeps/quick.json --out ab --junit gate.xml
  paceline gate --ab ./old/paceline ./new/paceline sweeps/quick.json --max-rounds 20
  paceline gate --ab 'python old.py' 'python new.py'       # your program's whole time
  paceline gate --ab 'python old.py' 'python new.py' train.json
  paceline gate --aa sweeps/quick.json           # steady enough? thresholds from its own noise
  paceline gate --baseline before.json --current after.json    # Google Benchmark's JSON

Exit codes: 0 pass, 1 regression, 2 undecided, 64 or 65 bad input, 130 or 143 stopped.
What each verdict needs: docs/gate.md)";

struct GateArguments : GateRequest {
  std::map<Quantity, std::string> thresholds;
  std::vector<std::string> only;
  std::string junit, markdown;
  DocumentArguments output;
  bool github = false;

  OutputFile junit_file() const { return {junit, "--junit", "JUnit XML of a gate", is_gate_junit}; }
  OutputFile markdown_file() const {
    return {markdown, "--markdown", "Markdown of a gate", is_gate_markdown};
  }
};

void print_judgement(const Judgement& judgement, const GateArguments& arguments) {
  print_documents({make_document(arguments, judgement)}, arguments.output);
  const char* actions = std::getenv("GITHUB_ACTIONS");
  if (arguments.github || (actions && std::string(actions) == "true")) {
    // Standard output is one JSON document, where that was asked for.
    const bool is_text = output_options(arguments.output).format == Format::text;
    (is_text ? print_text : print_note_text)(gate_annotations(judgement));
  }
  flush_output();
}

void write_files(const Judgement& judgement, const GateArguments& arguments) {
  const GateSides sides = make_sides(arguments);
  if (!arguments.junit.empty()) arguments.junit_file().write(gate_junit(judgement, sides));
  if (!arguments.markdown.empty()) {
    arguments.markdown_file().write(to_markdown(gate_document(judgement, sides)));
  }
}

int conclude(const GateOutcome& outcome, GateArguments& arguments) {
  if (outcome.stopped_by != 0) {
    print_note("paceline: stopped by {}; there is no verdict\n", strsignal(outcome.stopped_by));
    return 128 + outcome.stopped_by;
  }
  const int code = exit_code(outcome.judgement.verdict());
  print_judgement(outcome.judgement, arguments);
  try {
    write_files(outcome.judgement, arguments);
  } catch (const Error& error) {  // what is not a pass stays so
    if (code == 0) throw;
    print_note("paceline: {}\n", error.what());
  }
  return code;
}

int gate(GateArguments& arguments) {
  check_request(arguments);
  // What cannot be written or printed is refused before hours of runs.
  if (!arguments.junit.empty()) arguments.junit_file().check();
  if (!arguments.markdown.empty()) arguments.markdown_file().check();
  output_options(arguments.output);
  for (const auto& [quantity, text] : arguments.thresholds) {
    if (text.empty()) continue;
    arguments.options.thresholds[quantity] =
        parse_threshold(text, threshold_option(quantity_info(quantity)));
  }
  for (const std::string& key : arguments.only) {
    arguments.options.quantities.insert(parse_quantity(key, "--only"));
  }
  const GateOutcome outcome = run_gate(arguments);
  const int code = conclude(outcome, arguments);
  if (!outcome.kept.empty()) {
    print_note("the runs and their logs are kept in {}\n", outcome.kept.string());
  }
  return code;
}

void add_thresholds(CLI::App& verb, const std::shared_ptr<GateArguments>& arguments) {
  for (const QuantityInfo& info : quantities()) {
    verb.add_option(threshold_option(info), arguments->thresholds[info.quantity],
                    fmt::format("{} this much {} is a regression", info.heading,
                                info.more_is_worse ? "higher" : "lower"))
        ->group(info.quantity == Quantity::time ? "Options" : rarely_used("Options"))
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
  add_value(*verb, "--baseline STUDY", arguments->baseline,
            "the studies to compare with, or Google Benchmark JSON");
  add_value(*verb, "--current STUDY", arguments->current,
            "the studies to judge, or Google Benchmark JSON");
  add_value(*verb, "--ab OLD NEW [SPEC]", arguments->ab,
            "run both builds side by side, or both commands of a program of your own")
      ->expected(2, 3);
  add_value(*verb, "--aa SPEC", arguments->aa, "run this build against itself, as a control");
  add_value(*verb, "--rerun BINARY", arguments->rerun,
            "the baseline's binary: run what does not pass again, both builds side by side");
  add_value(*verb, "--current-binary BINARY", arguments->current_program,
            "the current side's binary for --rerun, instead of this one");
  CLI::Option* rounds =
      add_setting(*verb, "--rounds", runs.rounds,
                  "a fixed number of fresh runs of each point and side; what does not pass is "
                  "run again")
          ->check(CLI::Range(3, 1000));
  CLI::Option* until =
      verb->add_flag("--until-decided", runs.until_decided,
                     "go on in fresh rounds until every check is decided; valid however often it "
                     "looks [default: with --ab, without --rounds]")
          ->excludes(rounds);
  CLI::Option* most = add_setting(*verb, "--max-rounds", runs.max_rounds,
                                  "of a gate until it is decided: end undecided after these")
                          ->excludes(rounds)
                          ->check(CLI::Range(3, 1000));
  verb->add_flag("--control", runs.control, "with --ab, also run the old build against itself");
  add_value(*verb, "--set AXIS=VALUE", runs.set,
            "replace values of the spec (or AXIS=V1,V2; repeatable)")
      ->expected(1)
      ->take_all();
  add_value(*verb, "--data FOLDER", runs.data,
            "the data set, or the folder that holds it (data/mnist, or data)");
  add_value(*verb, "--timeout SECONDS", runs.timeout_seconds, "limit of one run")
      ->check(CLI::PositiveNumber);
  add_value(*verb, "--out FOLDER", runs.out, "keep the records of fresh runs here");
  add_thresholds(*verb, arguments);
  add_value(*verb, "--only QUANTITY", arguments->only,
            "judge only these quantities, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_flag("--force", arguments->force,
                 "compare runs of different machines or nodes, and say so");
  add_format_options(*verb, arguments->output);
  add_value(*verb, "--junit FILE", arguments->junit, "write JUnit XML");
  add_value(*verb, "--markdown FILE", arguments->markdown, "write a Markdown summary");
  verb->add_flag("--github", arguments->github,
                 "print annotations for GitHub Actions [default: where GITHUB_ACTIONS is true]");
  add_help_all(*verb);
  for (const char* name : {"--aa", "--rerun", "--current-binary", "--max-rounds", "--control",
                           "--data", "--timeout", "--force", "--github"}) {
    verb->get_option(name)->group(rarely_used("Options"));
  }
  verb->callback([arguments, rounds, until, most, &action] {
    arguments->has_rounds = rounds->count() > 0;
    arguments->has_most_rounds = most->count() > 0;
    arguments->runs.until_decided =
        until->count() > 0 || (!arguments->ab.empty() && !arguments->has_rounds);
    if (!arguments->aa.empty()) {
      arguments->runs.baseline = "first";
      arguments->runs.current = "second";
    }
    action = [arguments] { return gate(*arguments); };
  });
}

}  // namespace paceline
