// Renders a table as text, Markdown, CSV, JSON, HTML or LaTeX. All formats have the same content.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/plots/plot.h"
#include "analysis/table/table.h"
#include "engine/core/file.h"
#include "results/store.h"

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

// Every format except HTML, which has plots, too: render_html().
std::string render(const std::vector<Table>& tables, Format format, const TextStyle& style = {});

// The folder of a report. Files are written atomically, and never replace other tools' files.

// A file of the report in `folder`. It may replace an existing one only if the folder contains a
// report of Paceline (a report.json, collectives.json or history.json that says so).
OutputFile report_file(const std::filesystem::path& folder, const std::string& name);

// Throws input naming an existing file that is not part of a report.
void check_report_folder(const std::filesystem::path& folder,
                         const std::vector<std::string>& names);

// Renders records of collectives as tables with the columns of nccl-tests: algbw is bytes / time;
// busbw = algbw * 2 (n-1)/n is what each rank must at least send and receive. So busbw compares
// with a link's rate for any n (github.com/NVIDIA/nccl-tests, PERFORMANCE.md).

// For html: a fragment of a page.
std::string render_collectives(const std::vector<Record>& records, Format format);

// Escapes text of records for HTML, Markdown, LaTeX and CSV. HTML fragments are well-formed XML
// too.

// Escapes text for element content and quoted attributes: & < > " ' become entities, control
// characters become spaces.
std::string html_text(std::string_view text);
// The same for <pre>, keeping line breaks.
std::string html_text_lines(std::string_view text);

// Escapes a path for a link.
std::string url_text(std::string_view path);

// Converts gnuplot's SVG file to an element of a page: removes prolog, namespaces and gnuplot's
// titles, makes ids unique with `prefix`, and sets `title` for screen readers.
std::string inline_svg(const std::string& svg, const std::string& prefix, const std::string& title);

// On one line, with all characters escaped that Markdown would interpret.
std::string markdown_text(std::string_view text);

// On one line, with all characters escaped that LaTeX would interpret.
std::string latex_text(std::string_view text);

// A CSV cell on one line. Text that spreadsheets would interpret as a formula gets a leading quote;
// numbers stay unchanged.
std::string csv_text(std::string_view text);

// A report as one self-contained HTML file: it includes style, plots and an optional script, and
// loads nothing.

struct HtmlPicture {
  std::string name, title;  // of the plot
  std::string svg;          // gnuplot's output
};

// The output of `paceline explain`.
struct HtmlExplanation {
  std::vector<std::string> first;               // shown before its table
  std::vector<std::vector<std::string>> table;  // headings, then rows; empty: no output
  std::vector<std::string> sentences, notes;
};

struct HtmlSection {
  Table table;
  std::vector<HtmlPicture> pictures;
  std::string best = {};  // the output of `paceline best`, as lines; may be empty
  HtmlExplanation explanation = {};
  // For each row of the table, links to the records of its runs. Empty for a page without links.
  std::vector<std::vector<std::string>> records = {};
};

struct HtmlPage {
  std::vector<HtmlSection> sections;
  std::string collectives;  // an HTML fragment; may be empty
  std::vector<HtmlPicture> collective_pictures;
  std::string missing;  // why there are no plots; empty: there are plots
  // Files next to the page, for links; empty for a page without links.
  std::vector<std::string> files;
};

std::string render_html(const HtmlPage& page);

}  // namespace paceline
