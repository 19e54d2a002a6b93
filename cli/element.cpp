// paceline element begin|run|end: what a job of a study does for its run. For scripts.
#include "run/element.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "cli/verb.h"
#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "engine/launch/program.h"
#include "results/names.h"

namespace paceline {

namespace {

struct ElementOptions : ArrayElement {
  std::vector<std::string> built;
  ElementEnd end;
  std::string to;
};

ElementRun read_run(const ElementOptions& options) {
  return read_run(options, environment_of_process());
}

int begin_run(const ElementOptions& options) {
  const ElementRun run = read_run(options);
  if (run.is_done()) {
    print_note("the record of this run exists already\n");
    print("done\n");
    return 0;
  }
  check_job(run, options.built, environment_of_process());
  print("run\n");
  return 0;
}

// The process becomes the run, under the name by which it was called.
int become_run(const ElementOptions& options) {
  std::vector<std::string> words = read_words(options, environment_of_process());
  words.insert(words.begin(), program_invocation_name);
  restore_environment();
  execv(this_program().c_str(), as_arguments(words).data());
  throw usage_error(std::string("the run cannot be started: ") + strerror(errno),
                    this_program().string(), "check that the program still exists");
}

// Returns 1 if there is none.
int fall_back(const ElementOptions& options) {
  const ElementRun run = read_run(options);
  const std::string other =
      find_fallback(run, options.end.exit_code, options.end.status, options.to);
  if (other.empty()) return 1;
  print_note("note: backend {} could not sum on these nodes: falling back to {}\n",
             run.what.parameters.text("backend").value_or(lone_backend()), other);
  print("{}\n", other);
  return 0;
}

}  // namespace

void add_element(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("element", "What a job does for its run, for scripts");
  verb->require_subcommand(1);
  verb->group("");
  auto options = std::make_shared<ElementOptions>();
  const auto add = [&](const char* name, const char* help, int (*work)(const ElementOptions&)) {
    CLI::App* part = verb->add_subcommand(name, help);
    part->add_option("--points", options->points, "the points file of the array")->required();
    part->add_option("--index", options->index, "of the element in its array")
        ->check(CLI::NonNegativeNumber);
    part->add_option("--backend", options->backend, "instead of the run's own");
    part->callback(
        [options, work, &action] { action = [options, work] { return work(*options); }; });
    return part;
  };
  CLI::App* first = add("begin", "Check this job; print \"run\" or \"done\"", begin_run);
  first->add_option("--built", options->built, "what the program must have, as device=cuda");
  add("run", "Become the run", become_run);
  CLI::App* last = add("end", "Write down why a run left no record",
                       [](const auto& given) { return write_end(read_run(given), given.end); });
  ElementEnd& end = options->end;
  last->add_option("--exit-code", end.exit_code, "of the run")->required();
  last->add_option("--log", end.log, "of this job");
  last->add_option("--status", end.status, "its status folder");
  last->add_option("--minutes", end.minutes, "the job's time limit");
  last->add_option("--limit-key", end.limit_key, "of the site profile, which raises it");
  last->add_flag("--signalled", end.was_signalled, "by Slurm, before that limit");
  CLI::App* instead = add("fallback", "Print the backend to try instead, if any", fall_back);
  instead->add_option("--exit-code", end.exit_code, "of the run")->required();
  instead->add_option("--status", end.status, "its status folder")->required();
  instead->add_option("--to", options->to, "what stands in between tasks")->required();
  verb->footer("Example:\n  paceline element begin --points STUDY/slurm/S/1n1t1c.points --index 0");
}

}  // namespace paceline
