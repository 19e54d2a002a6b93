#include "engine/core/aligned.h"

#include <algorithm>

#include "engine/core/text.h"
#include "engine/core/utf8.h"

namespace paceline {

namespace {

// 0: nothing to show.
std::size_t column_width(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  std::size_t width = 0;
  for (std::size_t i = 1; i < rows.size(); ++i)
    width = std::max(width, display_width(rows[i][column]));
  return width == 0 ? 0 : std::max(width, display_width(rows[0][column]));
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

std::string wrapped(const std::string& sentence, std::size_t width, const std::string& first,
                    std::size_t next) {
  std::string text, line = first;
  bool begun = false;
  for (const std::string& word : split(printable(sentence), ' ')) {
    if (begun && display_width(line) + 1 + display_width(word) > width) {
      text += line + '\n';
      line = std::string(next, ' ');
      begun = false;
    }
    line += (begun ? " " : "") + word;
    begun = true;
  }
  return text + line + '\n';
}

std::string aligned(std::vector<std::vector<std::string>> rows, std::size_t left,
                    std::size_t width) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  constexpr std::size_t kGap = 2;
  std::vector<std::size_t> widths;
  std::vector<std::vector<std::size_t>> blocks(1);
  std::size_t used = 0;
  for (std::size_t k = 0; k < rows[0].size(); ++k) {
    widths.push_back(column_width(rows, k));
    if (widths[k] == 0) continue;
    if (width > 0 && used + widths[k] > width && blocks.back().size() > 1) {
      blocks.push_back({0});
      used = widths[0] + kGap;
    }
    blocks.back().push_back(k);
    used += widths[k] + kGap;
  }
  std::string text;
  for (const auto& block : blocks) {
    if (&block != &blocks.front()) text += '\n';
    for (const auto& row : rows) {
      std::string line;
      for (const std::size_t k : block) {
        const std::string space(widths[k] - std::min(widths[k], display_width(row[k])), ' ');
        const bool flush_left = k < left || k + 1 == row.size();
        line += (flush_left ? row[k] + space : space + row[k]) + std::string(kGap, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
  }
  return text;
}

}  // namespace paceline
