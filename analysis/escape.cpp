#include "analysis/escape.h"

#include "engine/core/text.h"
#include "engine/core/utf8.h"

namespace paceline {

namespace {

constexpr std::string_view kMarkdown = "|\\`*_<>[]";
constexpr std::string_view kFormulaBeginnings = "=+-@";

}  // namespace

std::string markdown_text(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (kMarkdown.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string csv_text(std::string_view text) {
  std::string cell = printable(text);
  const std::string_view seen = trim(cell);  // spreadsheets overlook what is before it
  const bool is_number = to_real(seen.starts_with('+') ? seen.substr(1) : seen).has_value();
  if (!seen.empty() && kFormulaBeginnings.find(seen.front()) != std::string_view::npos &&
      !is_number) {
    cell.insert(0, 1, '\'');
  }
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace paceline
