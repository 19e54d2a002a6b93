// Turns command-line errors into one line. The only place that uses the parser's messages.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace paceline {

// Names the first unknown word and the nearest known one; otherwise returns the parser's message.
std::string complaint(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& command);

}  // namespace paceline
