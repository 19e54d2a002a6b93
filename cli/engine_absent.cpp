// The verbs that need the engine, in a build without it.
#include <CLI/CLI.hpp>

#include "cli/verb.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

void add_absent(CLI::App& app, Action& action, const char* name, const char* summary) {
  CLI::App* verb = app.add_subcommand(name, summary);
  verb->allow_extras();
  verb->callback([name, &action] {
    action = [name]() -> int {
      throw usage_error(std::string("this build has no engine, so it has no verb ") + name, "",
                        "build with -DPACELINE_ENGINE=ON");
    };
  });
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  add_absent(app, action, "train", "Train a workload (not in this build)");
}

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure input by itself");
  bench->require_subcommand(1);
  bench->footer("Examples:\n  paceline bench input --data cassava --cache raw");
  add_bench_input(*bench, action);
  add_absent(*bench, action, "allreduce", "Measure a collective (not in this build)");
}

void add_screen(CLI::App& app, Action& action) {
  CLI::App* screen = app.add_subcommand("screen", "Judge a screen of a machine");
  screen->require_subcommand(1);
  screen->footer("Examples:\n  paceline screen report screen");
  add_screen_report(*screen, action);
}

void add_describe(CLI::App& app, Action& action) {
  add_absent(app, action, "describe", "Describe a workload (not in this build)");
}

void add_checkpoint(CLI::App& app, Action& action) {
  add_absent(app, action, "checkpoint", "Look at checkpoints (not in this build)");
}

}  // namespace paceline
