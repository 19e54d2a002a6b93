// Comma-separated values as in RFC 4180: quoted cells, doubled quotes, CRLF or LF.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct CsvRow {
  std::size_t line = 0;  // from 1, where the row begins
  std::vector<std::string> cells;
};

// Empty lines are left out. Throws input naming `name` and the line of a quote that is not closed.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

}  // namespace paceline
