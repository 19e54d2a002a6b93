// Fills placeholders into the text of a shell command, so that no value runs as a command.
#pragma once

#include <string>
#include <string_view>

#include "sweeps/program.h"

namespace paceline {

// Outside of quotes, a value is one word, whatever it holds. Inside the text's own quotes it stays
// as it is; throws usage there if it holds what a shell, or one that this one starts, would read.
std::string fill_shell_command(std::string_view text, const PlaceholderValue& value);

}  // namespace paceline
