// paceline screen

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "cli/run_options.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "run/screen/screen_run.h"

namespace paceline {

namespace {

constexpr char kScreenFooter[] = R"(Examples:
  paceline screen --site my-site.json --nodes 64                   # a job; prints how to read it
  srun -n 64 paceline screen --gpus 64 --nodes 64 --device cpu --backend ring --out screen
  srun -n 64 --gpus-per-task 1 paceline screen --gpus 64 --nodes 16 --device cuda --backend ring --fail
  paceline screen report screen
  paceline screen report screen --json

Measures every device (multiply-adds, memory copies), and sums between pairs of nodes, in a few
rounds; each part is compared with those like it. Start a process for each device: docs/screen.md.
Exit codes: 0 measured, 1 with --fail if something is slow, 64 or 65 bad input.)";

struct ScreenArguments : ScreenJobRequest {
  DeadlineTexts deadline_texts;
  DocumentArguments output;
  bool fail = false, yes = false;
};

int screen_by_job(const ScreenArguments& arguments) {
  if (!arguments.wait && (arguments.fail || arguments.output.json)) {
    throw usage_error("a job that is only sent reports nothing",
                      arguments.fail ? "--fail" : "--json", "add --wait");
  }
  // With --wait the report alone is the output.
  const auto print_line = [&](const std::string& text) {
    arguments.wait ? print_note_text(text) : print_now(text);
  };
  const std::optional<std::string> folder = submit_screen(
      arguments, print_line, [&arguments] { return arguments.yes || confirm_cost(); });
  if (!folder) return EXIT_FAILURE;
  return folder->empty() ? EXIT_SUCCESS
                         : print_screen(read_screen(*folder), arguments.output, arguments.fail);
}

int screen(ScreenArguments& arguments, const std::vector<std::string>& command) {
  arguments.deadlines = parse_deadlines(arguments.deadline_texts, environment_of_process());
  output_options(arguments.output);
  if (!arguments.site.empty()) return screen_by_job(arguments);
  const ScreenOutcome outcome = run_screen(arguments, command);
  return outcome.screen ? print_screen(*outcome.screen, arguments.output, arguments.fail)
                        : outcome.exit_code;
}

}  // namespace

void add_screen(CLI::App& app, Action& action) {
  auto a = std::make_shared<ScreenArguments>();
  CLI::App* verb = app.add_subcommand("screen", "Say which node, device or link of a job is slow");
  verb->footer(kScreenFooter);
  CLI::Option* gpus = add_value(*verb, "--gpus N", a->gpus, "number of devices, each of a process");
  add_value(*verb, "--nodes N", a->nodes, "nodes that they are spread over");
  add_value(*verb, "--backend NAME", a->backend,
            "what connects pairs of nodes: ring, mpi, mpi-ring, nccl");
  add_value(*verb, "--device NAME", a->device, "what is measured (paceline list devices)");
  add_value(*verb, "--cpus-per-task N", a->cpus_per_task, "CPUs of one process");
  CLI::Option* shared =
      verb->add_flag("--oversubscribe", a->oversubscribe, "allow processes to share CPUs");
  verb->add_option("--rounds", a->rounds, "rounds [default: 4, of more than 512 nodes 6]")
      ->check(CLI::Range(1, 100));
  add_value(*verb, "--out FOLDER", a->out,
            "keep the screen here [default of a job: a new folder in screens]");
  CLI::Option* site = add_value(*verb, "--site NAME", a->site,
                                "send it as a job of --nodes whole nodes, by this site profile")
                          ->excludes(gpus)
                          ->excludes(shared);
  add_setting(*verb, "--minutes N", a->minutes, "limit of that job")
      ->needs(site)
      ->check(CLI::Range(1, 1440));
  verb->add_flag("--dry-run", a->dry_run, "print its script and send nothing")->needs(site);
  verb->add_flag("--wait", a->wait, "wait for its end, and report")->needs(site);
  verb->add_flag("--yes", a->yes, "do not ask for confirmation")->needs(site);
  verb->add_flag("--busy-ok", a->busy_ok, "measure GPUs that others use, too");
  verb->add_flag("--fail", a->fail, "exit with 1 if something is slow");
  add_deadlines(*verb, a->deadline_texts, false);
  add_format_options(*verb, a->output);
  verb->callback([a, verb, &action] {
    if (!verb->get_subcommands().empty()) return;
    action = [a, command = action.command] { return screen(*a, command); };
  });
  add_screen_report(*verb, action);
}

}  // namespace paceline
