// The verbs and functions that need the engine, in a build without it.
#include <CLI/CLI.hpp>

#include "cli/plan_study.h"
#include "cli/resolve.h"
#include "cli/verb.h"
#include "cli/version.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

void add_absent(CLI::App& app, Action& action, const char* name, const char* summary) {
  CLI::App* verb = app.add_subcommand(name, summary);
  verb->allow_extras();
  verb->callback([name, &action] {
    action = [name]() -> int {
      throw Error(ErrorKind::usage, std::string("this build has no engine, so no ") + name, "",
                  "build with -DPACELINE_ENGINE=ON");
    };
  });
}

}  // namespace

void add_train(CLI::App& app, Action& action, const std::vector<std::string>&) {
  add_absent(app, action, "train", "Train a workload (not in this build)");
}

void add_bench(CLI::App& app, Action& action, const std::vector<std::string>&) {
  CLI::App* bench = app.add_subcommand("bench", "Measure input by itself");
  bench->require_subcommand(1);
  bench->footer("Examples:\n  paceline bench input --data cassava --cache raw");
  add_bench_input(*bench, action);
  add_absent(*bench, action, "allreduce", "Measure a collective (not in this build)");
}

void add_describe(CLI::App& app, Action& action) {
  add_absent(app, action, "describe", "Describe a workload (not in this build)");
}

void add_checkpoint(CLI::App& app, Action& action) {
  add_absent(app, action, "checkpoint", "Look at checkpoints (not in this build)");
}

RunResolver::RunResolver(std::string workload, std::function<void(const Error&)> data_is_absent)
    : workload_(std::move(workload)), data_is_absent_(std::move(data_is_absent)) {}

std::string hindrance_here(const PlannedPoint&) {
  return "";
}

std::string gpus_of_this_machine(const std::string&) {
  return "";
}

double planned_replica_bytes(const std::string&, const Point&) {
  return 0;
}

ResolvedRun RunResolver::resolve(const Point& given) {
  return {given, identity_hash(workload_, given), "", build_id()};
}

}  // namespace paceline
