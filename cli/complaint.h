// What is wrong with a command line, in one line. The parser's own words are said here only.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace paceline {

// The first word that is not known, with the nearest one; or what the parser found.
std::string complaint(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& command);

}  // namespace paceline
