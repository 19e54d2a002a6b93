// Parses comma-separated values as in RFC 4180: quoted cells, doubled quotes, CRLF or LF.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct CsvRow {
  std::size_t line = 0;  // line where the row starts, from 1
  std::vector<std::string> cells;
};

// Skips empty lines. Throws input naming `name` and the line of an unclosed quote.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

}  // namespace paceline
