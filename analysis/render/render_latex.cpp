// A table as papers set it: booktabs, no rules between rows, what is alike in all rows in the
// caption.
#include <fmt/format.h>

#include "analysis/render/render.h"

namespace paceline {

namespace {

// A heading of two lines is set as two.
std::string latex_heading(const std::string& heading) {
  const std::size_t end = heading.find('\n');
  if (end == std::string::npos) return latex_text(heading);
  return fmt::format("\\shortstack[r]{{{}\\\\{}}}", latex_text(heading.substr(0, end)),
                     latex_text(heading.substr(end + 1)));
}

}  // namespace

std::string render_latex(const Table& table) {
  std::string form, headings, rows;
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    const Column& column = table.columns[k];
    if (!column.shown || is_alike(table, k)) continue;
    form += column.is_text ? 'l' : 'r';
    headings += (headings.empty() ? "" : " & ") + latex_heading(column.heading);
  }
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (!table.columns[k].shown || is_alike(table, k)) continue;
      line += (line.empty() ? "    " : " & ") + latex_text(row[k].text);
    }
    rows += line + " \\\\\n";
  }
  const std::string same = alike_text(table);
  std::string text = "% \\usepackage{booktabs}\n";
  for (const std::string& warning : table.warnings)
    text += "% Warning: " + latex_text(warning) + "\n";
  for (const std::string& note : table.notes) text += "% " + latex_text(note) + "\n";
  return text + fmt::format(
                    "\\begin{{table}}\n  \\centering\n  \\caption{{{}{}}}\n"
                    "  \\begin{{tabular}}{{{}}}\n    \\toprule\n    {} \\\\\n    \\midrule\n{}"
                    "    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n",
                    latex_text(table.title), same.empty() ? "" : ". " + latex_text(same), form,
                    headings, rows);
}

}  // namespace paceline
