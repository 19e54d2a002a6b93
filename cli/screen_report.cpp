// paceline screen report
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "analysis/screen/screen.h"
#include "cli/study_options.h"
#include "cli/verb.h"

namespace paceline {

namespace {

struct ScreenReportArguments {
  DocumentArguments output;
  std::string folder;
  bool fail = false;
};

}  // namespace

int print_screen(const MachineScreen& screen, const DocumentArguments& output, bool fail) {
  const ScreenVerdict verdict = judge_screen(screen);
  print_documents({screen_document(screen, verdict)}, output);
  return fail && !verdict.slow.empty() ? EXIT_FAILURE : EXIT_SUCCESS;
}

void add_screen_report(CLI::App& app, Action& action) {
  auto a = std::make_shared<ScreenReportArguments>();
  CLI::App* verb = app.add_subcommand("report", "Judge a screen that was kept");
  verb->add_option("folder", a->folder, "its folder")->required();
  verb->add_flag("--fail", a->fail, "exit with 1 if something is slow");
  add_format_options(*verb, a->output);
  add_folder_options(*verb, a->output, "screen-report");
  verb->footer(
      "Examples:\n  paceline screen report screen\n"
      "  paceline screen report screen --out page          # with a map of pairs\n"
      "  paceline screen report screen --json");
  verb->callback([a, &action] {
    action = [a] {
      output_options(a->output);
      return print_screen(read_screen(a->folder), a->output, a->fail);
    };
  });
}

}  // namespace paceline
