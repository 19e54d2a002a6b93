// Renders a table as text, Markdown, CSV, JSON, HTML or LaTeX. All formats have the same content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/table/table.h"

namespace paceline {

enum class Format { text, markdown, csv, json, html, latex };

// "text", "md", "csv", "json", "html", "latex"; throws usage otherwise.
Format parse_format(std::string_view name);
std::string_view file_extension(Format format);  // "txt", "md", "csv", "json", "html", "tex"

struct TextStyle {
  bool colours = false;
  std::size_t width = 140;         // notes are wrapped at this column
  std::size_t terminal_width = 0;  // hides columns of wider tables, with a note; 0: shows all
};

std::string render_text(const Table& table, const TextStyle& style = {});
std::string render_markdown(const Table& table);
// A booktabs table for a paper, with warnings and the legend as comments above it.
std::string render_latex(const Table& table);

// A header line, then one line per row. Gaps are empty cells, shares are from 0 to 1. With several
// tables, the last column names the table of each line.
std::string render_csv(const std::vector<Table>& tables);

// {"schema": 1, "tables": [{"title", "workload", "precision", "scaling", "work": {"epochs": 2},
// "base", "interval", "rows": [{KEY: number, text or null, "speed_up_low": .., .., "command"}],
// "warnings": [what flaws these numbers], "findings", "left_out": [all records and runs that are in
// no row], "controls": [{"point", "runs", "ratio", "ratio_low", "ratio_high", "differs"}],
// "broken_rules": [{"rule", "what", "fix"}], "provenance": {NAME: [{"value", "runs"}]}, "notes"}]}
std::string render_json(const std::vector<Table>& tables);

// Every format except HTML, which has plots too: render_html.h.
std::string render(const std::vector<Table>& tables, Format format, const TextStyle& style = {});

}  // namespace paceline
