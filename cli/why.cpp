// paceline why -- PROGRAM
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "run/why/why_runs.h"
#include "run/why/working_copy.h"

namespace paceline {

namespace {

constexpr char kWhyFooter[] = R"(Examples:
  paceline why -- torchrun --nproc-per-node 2 train.py --batch-size 64
  paceline why --minutes 30 --out why-resnet -- torchrun --nproc-per-node 4 train.py
  paceline why --link data -- torchrun --nproc-per-node 2 train.py      # too large to copy

Runs the PyTorch program as it is, alone, and with one cost after the other taken away, in copies of
this folder. Nothing of yours changes: docs/why.md.
Exit codes: 0 decided, 1 the program fails as it is, 2 undecided, 64 or 65 bad input, 130 or 143 stopped.)";

struct WhyArguments : WhyRequest {
  DocumentArguments output;
};

int why(const WhyArguments& arguments) {
  const Environment environment = environment_of_process();
  const std::string launch = environment_value(environment, kLaunchVariable);
  if (!launch.empty()) become_in_copy(launch, arguments.command);
  if (!environment_value(environment, kHookVariable).empty()) {
    throw usage_error("a run of a study by `why` cannot be made by itself", "why",
                      "call paceline why again");
  }
  output_options(arguments.output);
  const WhyOutcome outcome = run_why(arguments);
  if (outcome.stopped_by != 0) {
    print_note(
        "paceline: stopped by {}; there is no verdict{}\n", strsignal(outcome.stopped_by),
        outcome.study.empty() ? "" : "; the records: paceline report " + outcome.study.string());
    return 128 + outcome.stopped_by;
  }
  print_documents({why_document(outcome.verdict, outcome.evidence)}, arguments.output);
  print_note("the records: paceline report {}\n", outcome.study.string());
  return outcome.verdict.is_decided ? EXIT_SUCCESS : 2;
}

}  // namespace

void add_why(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<WhyArguments>();
  CLI::App* verb =
      app.add_subcommand("why", "Say why N replicas of a PyTorch program are no faster");
  verb->footer(kWhyFooter);
  verb->add_option(kProgramWords, arguments->command, "the program and its words, after --")
      ->required();
  add_setting(*verb, "--minutes", arguments->minutes, "end after these, decided or not")
      ->check(CLI::PositiveNumber);
  add_value(*verb, "--out FOLDER", arguments->out,
            "keep the records here [default: a new folder in TMPDIR]");
  add_value(*verb, "--link PATH", arguments->linked,
            "what the program only reads, linked instead of copied (repeatable)")
      ->expected(1)
      ->take_all();
  verb->add_flag("--writes-ok", arguments->writes_ok,
                 "let the program write outside of its copy, also into your own files");
  add_format_options(*verb, arguments->output);
  verb->callback([arguments, &action] {
    // CLI11 makes two words of "[1,2]".
    const auto words = std::ranges::find(action.command, "--");
    if (words != action.command.end()) arguments->command = {words + 1, action.command.end()};
    action = [arguments] { return why(*arguments); };
  });
}

}  // namespace paceline
