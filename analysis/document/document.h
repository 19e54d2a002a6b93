// The output of an analysis command as plain data: a title, warnings, and sections of sentences,
// tables and plots. Each format has one writer, and so has a folder of files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/plots/plot.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/error.h"
#include "engine/core/json.h"

namespace paceline {

struct Cell {
  std::string text = {};             // for people; empty: a gap
  std::optional<double> value = {};  // for programs; empty for texts and gaps
  std::optional<Interval> interval = {};
  std::vector<std::string> links = {};  // files, which a page in a folder links to
};

struct Column {
  std::string key;           // stable name in CSV and JSON, with its unit; shares are from 0 to 1
  std::string heading = {};  // for people; may have two lines
  bool is_text = false;
  bool is_whole = false;
  bool has_interval = false;  // CSV and JSON have KEY_low and KEY_high too
  bool shown = true;          // false: only programs get it
  bool has_data = false;
  bool is_layout = false;  // where a row ran: said once, below the table, if all rows have the same
  int detail = 0;  // narrow terminals omit columns with the largest value first; 0: never omitted
  bool is_flag = false;          // true or false in JSON; its value is 1 or 0
  bool is_code = false;          // a command, which pages offer to copy
  std::string group = "layout";  // by which --columns names several
  bool is_essential = false;     // shown without data, too
  bool is_extra = false;         // only shown if it is chosen; programs get it
  std::string note = {};         // what the legend says of an extra column
  std::string absence = {};      // what it says instead if the column has no data
};

struct Table {
  std::string key = "rows";  // of the rows in JSON; empty: JSON leaves them out
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};
  std::vector<bool> is_gap = {};     // of each row, or empty: none is
  std::vector<bool> is_detail = {};  // rows that only programs get; or empty
  std::vector<bool> is_folded = {};  // rows that a screen leaves out; or empty
  std::string folded = {};           // which these are
  bool in_text = true;               // false: plain text has sentences only
  // How many of the first columns name a row. Each block of a table that is wider than the terminal
  // repeats them.
  std::size_t naming = 1;
};

// What a screen shows of statements: plain text of a brief document without details.
enum class OnScreen {
  always,  // without it a verdict or a ratio of the table is read wrongly
  first,   // one of the first kMostOnScreen, those of the least `rank` and of the largest `weight`
  never,   // it repeats the table
};
inline constexpr std::size_t kMostOnScreen = 5;

struct Statement {
  Statement(std::string sentence) : text(std::move(sentence)) {}  // NOLINT: implicit
  Statement(std::string sentence, std::vector<std::string> parts)
      : text(std::move(sentence)), details(std::move(parts)) {}
  std::string text;
  std::vector<std::string> details;
  OnScreen on_screen = OnScreen::always;
  int rank = 0;
  double weight = 0;
};

// What JSON has of a section or document, beside the rows.
using Facts = std::shared_ptr<const Json>;
Facts make_facts(Json json);

enum class Visibility {
  always,
  in_detail,  // in plain text only where details are asked for
  on_pages,
};

struct Section {
  std::string title = {};     // may be empty
  std::string kind = {};      // of a part: its class in a page's style sheet
  std::string lead = {};      // when and where, for pages
  std::string headline = {};  // the result in one sentence
  std::vector<std::string> warnings = {};
  Table table = {};
  std::vector<Statement> findings = {};
  std::vector<Plot> plots = {};
  std::string code = {};  // a command, verbatim, on pages
  std::vector<Section> parts = {};
  std::vector<std::string> caveats = {};  // what changes a number or verdict; a screen has them
  std::vector<std::string> notes = {};    // how to read it
  Facts facts = nullptr;
  Visibility shown = Visibility::always;
  bool is_folded = false;  // on pages
};

struct Document {
  std::string name = {};   // base name of its files
  std::string title = {};  // the verdict, where there is one
  std::vector<std::string> lead = {};
  std::vector<std::string> warnings = {};
  std::vector<Section> sections = {};
  std::vector<std::string> notes = {};  // of all sections
  // Plain text without details is a screen: the columns that answer, caveats, the first findings.
  bool is_brief = false;
  // A page to hand in: LaTeX has its sentences, Markdown in a folder its plots, and paper has room.
  bool stands_alone = false;
  // The key of the list of sections in JSON; empty: their facts and rows are the document's.
  std::string list = {};
  int schema = 1;
  Facts facts = nullptr;
};

// Its notes, then its caveats.
std::vector<std::string> all_notes(const Section& section);
// Each one once, those of the document itself first.
std::vector<std::string> all_warnings(const Document& document);
std::vector<const Plot*> all_plots(const Document& document);

enum class Format { text, markdown, csv, json, html, latex };

// "text", "md", "csv", "json", "html", "latex"; throws usage otherwise.
Format parse_format(std::string_view name);

struct TextStyle {
  bool colours = false;
  bool details = false;            // all of a brief document
  std::size_t width = 140;         // sentences are wrapped at this column
  std::size_t terminal_width = 0;  // wider tables lose details, then are split; 0: shows all
};

std::string to_text(const Document& document, const TextStyle& style = {});
std::string to_markdown(const Document& document);
// A header line, then one line per row. Gaps are empty cells, shares are from 0 to 1. With several
// tables, the last column names the table of each line.
std::string to_csv(const Document& document);
// {"schema", the document's facts, LIST: [{"title", "warnings", "findings", "notes", the section's
// facts, "rows": [{KEY: number, text or null, KEY_low, ..}]}]}
std::string to_json_text(const Document& document);
// Booktabs tables of six columns, with warnings and the legend as comments above, as floats with a
// label.
std::string to_latex(const Document& document);

// The pictures of a page, which has their titles.
struct Pictures {
  std::map<std::string, std::string> svgs = {};  // by the plot's name
  std::optional<Error> refused = {};             // why gnuplot drew none
};
Pictures draw_pictures(const Document& document);

// One self-contained file: it includes style, pictures and a small script, and loads nothing.
// `folder`: where it will stand beside `files`, for links; empty: without links.
std::string to_html(const Document& document, const Pictures& pictures = {},
                    const std::filesystem::path& folder = {},
                    const std::vector<std::string>& files = {});

struct OutputOptions {
  Format format = Format::text;  // of what is printed
  TextStyle style = {};
  std::filesystem::path out = {};  // folder of NAME.json, .md, .csv, .html and plots; may be empty
  std::vector<std::string> plots = {"svg"};
};

struct WrittenFiles {
  std::vector<std::filesystem::path> tables, plots;
};

// Prints documents and writes their files, each atomically. Replaces only files of an older folder
// of Paceline's: throws input before printing otherwise. With text, prints the files' names last.
// Throws usage at the end if gnuplot is missing.
WrittenFiles write_documents(const std::vector<Document>& documents, const OutputOptions& options,
                             std::ostream& stream);

// Shared by the writers.

// Notes that all of several sections have are said once, at the end.
Document with_shared_notes(Document document);

// What people see of a table, and the columns that have one value in all rows: "nodes 1, runs 5".
struct VisibleTable {
  std::vector<std::size_t> columns, rows;
  std::string alike;       // may be empty
  std::size_t hidden = 0;  // columns that a screen leaves out

  // The last of the columns with the most detail.
  std::vector<std::size_t>::iterator least_needed(const Table& table);
};
VisibleTable visible_part(const Table& table, bool on_screen = false);
// A screen and the first sight of a page leave it out.
inline bool is_more(const Column& column) {
  return column.detail > 2;
}
// In their order: those that a screen always has, then the first of the others.
std::vector<Statement> first_findings(const std::vector<Statement>& findings);
std::string one_line(const std::string& heading);  // a heading of two lines

// The rows in JSON.
Json to_json(const Table& table);

// Escapes text of records. HTML is well-formed XML too.

using Escape = std::pair<char, std::string_view>;
using Escapes = std::vector<Escape>;
std::string escaped(std::string_view text, const Escapes& escapes);

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

}  // namespace paceline
