// Formats --help: one line per option with type, choices and default, grouped by task.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace paceline {

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
