#include "analysis/aligned.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/utf8.h"

namespace paceline {

namespace {

// 0: nothing to show.
std::size_t width_of(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  std::size_t width = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) width = std::max(width, rows[i][column].size());
  return width == 0 ? 0 : std::max(width, rows[0][column].size());
}

}  // namespace

std::string aligned(std::vector<std::vector<std::string>> rows, std::size_t left) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<std::size_t> widths;
  for (std::size_t k = 0; k < rows[0].size(); ++k) widths.push_back(width_of(rows, k));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (widths[k] == 0) continue;
      const bool flush_left = k < left || k + 1 == row.size();
      line += flush_left ? fmt::format("{:<{}}  ", row[k], widths[k])
                         : fmt::format("{:>{}}  ", row[k], widths[k]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace paceline
