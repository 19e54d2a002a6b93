// A verb of the command line: one file that parses options, calls the library and prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace paceline {

// What the selected verb does: it assigns a function that returns the exit code.
struct Action {
  std::vector<std::string> command;  // the complete command line, for records and spawned ranks
  std::function<int()> run;

  template <typename Run>
  void operator=(Run what) {
    run = std::move(what);
  }
};

// A verb `x` is a function add_x of this type, defined in its own file, and a row in main.cpp.
using AddVerb = void(CLI::App& app, Action& action);

AddVerb add_bench_input;    // of `bench`: the app is that verb
AddVerb add_screen_report;  // of `screen`

// The positional words of a program: all that stands after "--", as it stands there.
inline constexpr char kProgramWords[] = "command";

// "--rounds N": an option with a value, and what help calls that.
template <typename App, typename Value>
auto* add_value(App& verb, const std::string& usage, Value& value, const std::string& help) {
  const std::size_t name_end = usage.find(' ');
  auto* option = verb.add_option(usage.substr(0, name_end), value, help);
  if (name_end != std::string::npos) option->type_name(usage.substr(name_end + 1));
  return option;
}
// The same, whose default is the value now.
template <typename App, typename Value>
auto* add_setting(App& verb, const std::string& usage, Value& value, const std::string& help) {
  return add_value(verb, usage, value, help)->capture_default_str();
}

// Formats --help: one line per option with type, choices and default, grouped by task.

// At most 100 columns. Titles are bold on terminals with colours.
void set_help_format(CLI::App& app);

// The title of the first group.
inline constexpr char kMostUsed[] = "Most used";
// The group of a verb's options that only --help-all shows, under `title`.
std::string rarely_used(std::string_view title);
// Adds --help-all to the verb.
void add_help_all(CLI::App& verb);

// Turns command-line errors into one line. The only place that uses the parser's messages.

// Names the first unknown word and the nearest known one; otherwise returns the parser's message.
std::string complaint(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& command);

}  // namespace paceline
