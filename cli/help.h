// What --help prints: an option a line with its type, choices and default, in groups by task.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace paceline {

// At most 100 columns; titles are bold on a terminal that wants colours.
void set_help_format(CLI::App& app);

// The group that stands first.
inline constexpr char kMostUsed[] = "Most used";
// The group of a verb's options that --help leaves out and --help-all shows, under the title.
std::string rarely_used(std::string_view title);
// Gives the verb --help-all.
void add_help_all(CLI::App& verb);

}  // namespace paceline
