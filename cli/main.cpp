#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "run/version.h"

namespace paceline {

AddVerb add_archive, add_bench, add_best, add_cancel, add_checkpoint, add_collect, add_completion,
    add_data, add_describe, add_doctor, add_element, add_explain, add_export, add_gate, add_history,
    add_import, add_list, add_merge, add_new, add_plan, add_predict, add_report, add_status,
    add_screen, add_submit, add_sweep, add_train, add_why;

namespace {

// In the order of --help. `element` is for the scripts that submit writes, and hidden.
const std::pair<const char*, AddVerb*> kVerbs[] = {
    {"Every day", add_new},    {"Every day", add_sweep}, {"Every day", add_report},
    {"Every day", add_gate},   {"Every day", add_train}, {"Every day", add_submit},
    {"Every day", add_status}, {"More", add_why},        {"More", add_screen},
    {"More", add_explain},     {"More", add_best},       {"More", add_predict},
    {"More", add_history},     {"More", add_plan},       {"More", add_describe},
    {"More", add_bench},       {"More", add_checkpoint}, {"More", add_data},
    {"More", add_collect},     {"More", add_cancel},     {"More", add_import},
    {"More", add_export},      {"More", add_archive},    {"More", add_merge},
    {"More", add_list},        {"More", add_doctor},     {"More", add_completion},
    {"", add_element}};

constexpr char kMainFooter[] = R"(Examples:
  paceline train mnist-cnn --gpus 2 --backend mpi
  paceline sweep sweeps/quick.json --results results/local
  paceline report results/local/quick
  paceline explain results/local/quick
  paceline gate --baseline nightly/quick --current results/local/quick
  paceline submit sweeps/quick.json --site slurm/sites/generic.json --dry-run
  paceline data make cassava --images 256 --out cassava-256
  paceline doctor

Exit codes: 0 success, 1 a failed check or point, 2 an undecided gate,
64 wrong usage, 65 bad input, 70 internal, 71 peer lost, 72 stall, 73 ranks disagree,
75 pre-empted. Docs: README.md)";

[[noreturn]] void refuse_empty(const std::string& name) {
  throw usage_error(name + " is empty", "", "give a value, or leave it out");
}

// CLI11 would take the next word for the value of "--record=", and "" for none where the value may
// be left out.
void refuse_empty_words(const std::vector<std::string>& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "--") return;
    if (!word.starts_with("--")) continue;
    if (word.find('=') == word.size() - 1) refuse_empty(word.substr(0, word.size() - 1));
    if (i + 1 < command.size() && command[i + 1].empty()) refuse_empty(word);
  }
}

// With an unset variable, --record "$FILE" must not start a run that leaves no record. (An option
// whose value may be left out has an empty one then.) CLI11 takes nan for a positive number.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    if (option->get_name() == kProgramWords) continue;
    const bool is_number = option->get_type_name().ends_with("POSITIVE");
    option->transform([name = option->get_name(), is_number](std::string value) {
      if (value.empty()) refuse_empty(name);
      if (!is_number || std::isfinite(std::strtod(value.c_str(), nullptr))) return value;
      throw usage_error(fmt::format("{}: is {}, must be above 0", name, value), "",
                        "give a number that is finite");
    });
  }
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    refuse_empty_values(*verb);
  }
}

// "help train" and "version", as other programs have them.
std::vector<std::string> with_options_for_verbs(std::vector<std::string> words) {
  if (words.size() == 2 && words[1] == "version") words[1] = "--version";
  if (words.size() >= 2 && words[1] == "help") {
    words.erase(words.begin() + 1);
    words.emplace_back("--help");
  }
  return words;
}

// "--checkpoint-every 17 steps", as people write it, is one value.
std::vector<std::string> with_units_joined(std::vector<std::string> words) {
  const auto is_number = [](const std::string& word) {
    return !word.empty() && word.find_first_not_of("0123456789.") == std::string::npos;
  };
  const auto is_unit = [](std::string word) {
    if (word.ends_with("s")) word.pop_back();
    return word == "step" || word == "epoch" || word == "minute";
  };
  for (std::size_t i = 0; i + 2 < words.size() && words[i] != "--"; ++i) {
    if (words[i] != "--checkpoint-every" || !is_number(words[i + 1]) || !is_unit(words[i + 2])) {
      continue;
    }
    words[i + 1] += words[i + 2];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
  }
  return words;
}

// Records and JSON hold text only, so an argument that is not UTF-8 could not be recorded.
void check_text(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (is_utf8(command[i])) continue;
    throw usage_error("the argument is not UTF-8 text",
                      fmt::format("argument {}: {}", i, printable(command[i])),
                      "give names in UTF-8");
  }
}

int run(int argc, char** argv) {
  CLI::App app{"What speed-up did N times the GPUs give, and where did the rest go?", "paceline"};
  set_help_format(app);
  app.set_version_flag("--version", version_line(), "show the version");
  app.footer(kMainFooter);
  app.require_subcommand(1);
  check_text({argv, argv + argc});
  const std::vector<std::string> command =
      with_options_for_verbs(with_units_joined({argv, argv + argc}));
  Action action{.command = command, .run = {}};
  for (const auto& [group, add] : kVerbs) {
    add(app, action);
    app.get_subcommands([](CLI::App*) { return true; }).back()->group(group);
  }
  refuse_empty_values(app);
  refuse_empty_words(command);
  try {
    // CLI11 takes them from the back.
    app.parse(std::vector<std::string>(command.rbegin(), command.rend() - 1));
  } catch (const CLI::Success& done) {
    std::ostringstream text;
    const int code = app.exit(done, text, text);
    print_text(text.str());
    flush_output();
    return code;
  } catch (const CLI::ParseError& error) {
    print_note("paceline: {}\n", complaint(app, error, command));
    return exit_code(ErrorKind::usage);
  }
  const int code = action.run();
  flush_output();
  return code;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error to report, not a death
  try {
    return paceline::run(argc, argv);
  } catch (...) {
    const paceline::Error error = paceline::caught_error();
    paceline::print_note("paceline: {}\n", error.what());
    return paceline::exit_code(error.kind());
  }
}
