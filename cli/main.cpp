#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/verb.h"
#include "cli/version.h"
#include "engine/core/error.h"

namespace {

constexpr char kFooter[] = R"(Examples:
  paceline train mnist-cnn --gpus 2 --backend mpi
  paceline sweep sweeps/quick.json --results results/local
  paceline report results/local/quick
  paceline doctor

Exit codes: 0 success, 1 a failed check or point, 64 wrong usage, 65 bad input, 70 internal,
71 peer lost, 72 stall, 73 ranks disagree, 75 pre-empted. Docs: README.md)";

int run(int argc, char** argv) {
  CLI::App app{"What speed-up did N times the GPUs give, and where did the rest go?", "paceline"};
  app.set_version_flag("--version", paceline::version_line());
  app.footer(kFooter);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  const std::vector<std::string> command(argv, argv + argc);
  paceline::Action action;
  paceline::add_list(app, action);
  paceline::add_describe(app, action);
  paceline::add_train(app, action, command);
  paceline::add_sweep(app, action);
  paceline::add_report(app, action);
  paceline::add_doctor(app, action);
  paceline::add_completion(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "paceline: %s; see paceline --help\n", error.what());
    return paceline::exit_code(paceline::ErrorKind::usage);
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const paceline::Error& error) {
    std::fprintf(stderr, "paceline: %s\n", error.what());
    return paceline::exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "paceline: out of memory; use a smaller batch or more memory\n");
    return paceline::exit_code(paceline::ErrorKind::internal);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paceline: internal error: %s; please report it with the command\n",
                 error.what());
    return paceline::exit_code(paceline::ErrorKind::internal);
  }
}
