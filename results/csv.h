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

// Skips empty lines and a byte order mark. Throws input naming `name` and the line: an unclosed
// quote, text that is not UTF-8.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

// For errors about a missing column: the headings, or that they are not separated by commas.
std::string shown_headings(const std::vector<std::string>& headings);

}  // namespace paceline
