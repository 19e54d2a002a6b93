#include "analysis/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline {

Format parse_format(std::string_view name) {
  if (name == "text") return Format::text;
  if (name == "md") return Format::markdown;
  if (name == "csv") return Format::csv;
  if (name == "json") return Format::json;
  if (name == "html") return Format::html;
  if (name == "latex") return Format::latex;
  throw Error(ErrorKind::usage, fmt::format("unknown format \"{}\"", name), "--format",
              suggestion(name, {"text", "md", "csv", "json", "html", "latex"}));
}

std::string_view file_extension(Format format) {
  switch (format) {
    case Format::text:
      return "txt";
    case Format::markdown:
      return "md";
    case Format::csv:
      return "csv";
    case Format::json:
      return "json";
    case Format::html:
      return "html";
    case Format::latex:
      return "tex";
  }
  return "txt";
}

namespace {

// Characters, not bytes: "±" is two bytes of UTF-8.
std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return left ? text + space : space + text;
}

// Two lines, so that columns are no wider than their numbers.
std::vector<std::string> heading_lines(const std::string& heading) {
  const std::size_t end = heading.find('\n');
  if (end == std::string::npos) return {"", heading};
  return {heading.substr(0, end), heading.substr(end + 1)};
}

std::string one_line(const std::string& heading) {
  const std::vector<std::string> lines = heading_lines(heading);
  const bool joined = lines[0].empty() || lines[0].ends_with('-');
  return lines[0] + (joined ? "" : " ") + lines[1];
}

// The table's texts and how wide each column is. Values and their intervals are aligned apart:
// "10.30 ±0.2" stands under " 9.20 ±0.1".
class Grid {
 public:
  // Of `terminal_width` columns; 0: of any.
  Grid(const Table& table, std::size_t terminal_width) : table_(table) {
    for (std::size_t k = 0; k < table.columns.size(); ++k) {
      headings_.push_back(heading_lines(table.columns[k].heading));
      std::size_t tail = 0;
      for (const auto& row : table.rows)
        tail = std::max(tail, display_width(read_tail(shown(row, k))));
      tails_.push_back(tail);
      std::size_t width = 0;
      for (const std::string& line : headings_[k]) width = std::max(width, display_width(line));
      for (const auto& row : table.rows) width = std::max(width, display_width(cell(row, k)));
      widths_.push_back(width);
      shown_.push_back(table.columns[k].shown);
    }
    if (terminal_width > 0) fit(terminal_width);
  }

  std::string heading(std::size_t line) const {
    std::string text;
    for (std::size_t k = 0; k < widths_.size(); ++k) add(text, k, headings_[k][line]);
    return text;
  }

  std::string row(const std::vector<Cell>& cells) const {
    std::string text;
    for (std::size_t k = 0; k < widths_.size(); ++k) add(text, k, cell(cells, k));
    return std::string(text.substr(0, text.find_last_not_of(' ') + 1));
  }

  // What a narrow terminal has no room for; or nothing.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (!alike_.empty()) notes.push_back("of all rows: " + join(alike_, ", "));
    if (!left_out_.empty()) {
      notes.push_back(fmt::format(
          "not shown at {} columns: {}; a wider terminal, COLUMNS=300 or --format md shows all",
          limit_, join(left_out_, ", ")));
    }
    return notes;
  }

  std::size_t width() const {
    std::size_t width = 0;
    for (std::size_t k = 0; k < widths_.size(); ++k) {
      if (shown_[k]) width += widths_[k] + (width > 0 ? 2 : 0);
    }
    return width;
  }

 private:
  // First what does not tell rows apart, then the details.
  void fit(std::size_t limit) {
    limit_ = limit;
    for (std::size_t k = 0; k < shown_.size() && width() > limit; ++k) {
      const Column& column = table_.columns[k];
      if (!shown_[k] || !column.is_layout || table_.rows.empty()) continue;
      const std::string& first = table_.rows[0][k].text;
      if (std::any_of(table_.rows.begin(), table_.rows.end(),
                      [&](const auto& row) { return row[k].text != first; })) {
        continue;
      }
      shown_[k] = false;
      alike_.push_back(one_line(column.heading) + " " + first);
    }
    while (width() > limit) {
      std::size_t least = shown_.size();
      for (std::size_t k = 0; k < shown_.size(); ++k) {
        const int detail = shown_[k] ? table_.columns[k].detail : 0;
        if (detail > (least < shown_.size() ? table_.columns[least].detail : 0)) least = k;
      }
      if (least == shown_.size()) return;
      shown_[least] = false;
      left_out_.push_back(one_line(table_.columns[least].heading));
    }
  }

  // From its interval on, which stands behind the value.
  static std::string read_tail(const std::string& text) {
    const std::size_t at = std::min(text.find(" ±"), text.find(" ["));
    return at == std::string::npos ? "" : text.substr(at);
  }

  // The margins of some columns are left to the other formats: "(74.5 ±0.2 %)" is "(74.5 %)".
  std::string shown(const std::vector<Cell>& cells, std::size_t k) const {
    const std::string& text = cells[k].text;
    const std::string tail = read_tail(text);
    if (!table_.columns[k].margin_is_long || tail.empty()) return text;
    const std::size_t bracket = tail.find(']');
    const std::size_t end =
        bracket == std::string::npos ? tail.find_first_of(" )", 1) : bracket + 1;
    return text.substr(0, text.size() - tail.size()) + (end < tail.size() ? tail.substr(end) : "");
  }

  std::string cell(const std::vector<Cell>& cells, std::size_t k) const {
    const std::string text = printable(shown(cells, k));
    if (table_.columns[k].is_text) return text;
    if (text.empty()) return padded("-", 1 + tails_[k], true);
    const std::string tail = read_tail(text);
    return text.substr(0, text.size() - tail.size()) + padded(tail, tails_[k], true);
  }

  void add(std::string& text, std::size_t k, const std::string& what) const {
    if (!shown_[k]) return;
    if (!text.empty()) text += "  ";
    text += padded(what, widths_[k], table_.columns[k].is_text);
  }

  const Table& table_;
  std::vector<std::vector<std::string>> headings_;
  std::size_t limit_ = 0;
  std::vector<std::size_t> widths_, tails_;
  std::vector<bool> shown_;
  std::vector<std::string> alike_, left_out_;
};

// "  - a long sentence" with its later lines indented.
std::string item(const std::string& sentence, std::size_t width) {
  return wrapped(sentence, width, "  - ", 4);
}

constexpr char kHiddenMargins[] =
    "intervals that are not shown here (first epoch, samples/s, efficiency, Karp-Flatt) are in the "
    "other "
    "formats";

bool has_hidden_margins(const Table& table) {
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    if (!table.columns[k].margin_is_long || !table.columns[k].shown) continue;
    for (const auto& row : table.rows) {
      if (row[k].interval) return true;
    }
  }
  return false;
}

// One field of a CSV line.
struct CsvField {
  enum class Part { value, low, high };
  std::size_t column;
  Part part;
};

std::vector<CsvField> csv_fields(const Table& table) {
  using enum CsvField::Part;
  std::vector<CsvField> fields;
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    fields.push_back({k, value});
    if (table.columns[k].has_interval) fields.insert(fields.end(), {{k, low}, {k, high}});
  }
  return fields;
}

std::string csv_name(const Column& column, CsvField::Part part) {
  using enum CsvField::Part;
  return column.key + (part == low ? "_low" : part == high ? "_high" : "");
}

// Of all tables: a column that only some have stands where these have it.
std::vector<std::string> csv_names(const std::vector<Table>& tables) {
  std::vector<std::string> names;
  for (const Table& table : tables) {
    auto place = names.begin();
    for (const auto& [k, part] : csv_fields(table)) {
      const std::string name = csv_name(table.columns[k], part);
      const auto known = std::find(names.begin(), names.end(), name);
      place = (known == names.end() ? names.insert(place, name) : known) + 1;
    }
  }
  return names;
}

std::string csv_value(const Column& column, const Cell& cell, CsvField::Part part) {
  using enum CsvField::Part;
  if (part == value) {
    if (column.is_text) return csv_text(cell.text);
    return cell.value ? fmt::format("{}", *cell.value) : "";
  }
  if (!cell.interval) return "";
  return fmt::format("{}", part == low ? cell.interval->low : cell.interval->high);
}

}  // namespace

std::string render_text(const Table& table, const TextStyle& style) {
  const Grid grid(table, style.terminal_width);
  const char* bold = style.colours ? kBold : "";
  const char* plain = style.colours ? kPlain : "";
  std::string text;
  for (const std::string& warning : table.warnings) {
    std::string lines = wrapped(printable("Warning: " + warning), style.width);
    lines.pop_back();
    text += bold + lines + plain + '\n';
  }
  text += fmt::format("{}{}{}\n\n", bold, printable(table.title), plain);
  for (const std::size_t line : {0, 1}) {
    text += fmt::format("{}{}{}\n", bold, grid.heading(line), plain);
  }
  text += std::string(grid.width(), '-') + '\n';
  for (const auto& row : table.rows) text += grid.row(row) + '\n';
  text += '\n';
  for (const std::string& finding : table.findings) text += item(finding, style.width);
  if (!table.findings.empty()) text += '\n';
  if (!table.broken.empty()) {
    text += summarize(table.broken) + ":\n";
    for (const BrokenRule& each : table.broken) text += item(format_sentence(each), style.width);
    text += '\n';
  }
  for (const std::string& note : grid.notes()) text += item(note, style.width);
  if (has_hidden_margins(table)) text += item(kHiddenMargins, style.width);
  for (const std::string& note : table.notes) text += item(note, style.width);
  return text;
}

std::string render_markdown(const Table& table) {
  std::string headings = "|", rule = "|";
  for (const Column& column : table.columns) {
    if (!column.shown) continue;
    headings += fmt::format(" {} |", markdown_text(one_line(column.heading)));
    rule += column.is_text ? " --- |" : " ---: |";
  }
  std::string text;
  for (const std::string& warning : table.warnings) {
    text += fmt::format("**Warning: {}**\n\n", markdown_text(warning));
  }
  text += fmt::format("## {}\n\n{}\n{}\n", markdown_text(table.title), headings, rule);
  for (const auto& row : table.rows) {
    text += '|';
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (table.columns[k].shown) text += fmt::format(" {} |", markdown_text(row[k].text));
    }
    text += '\n';
  }
  const auto add = [&](const std::vector<std::string>& sentences) {
    if (!sentences.empty()) text += '\n';
    for (const std::string& sentence : sentences) {
      text += fmt::format("- {}\n", markdown_text(sentence));
    }
  };
  add(table.findings);
  if (!table.is_comparison) {
    text += fmt::format("\n{}{}\n", summarize(table.broken), table.broken.empty() ? "." : ":");
  }
  std::vector<std::string> broken, facts;
  for (const BrokenRule& each : table.broken) broken.push_back(format_sentence(each));
  for (const ProvenanceFact& fact : table.provenance) facts.push_back(format_sentence(fact));
  add(broken);
  add(table.notes);
  add(facts);
  return text;
}

std::string render_csv(const std::vector<Table>& tables) {
  std::vector<std::string> names = csv_names(tables);
  const bool several = tables.size() > 1;
  std::string text = join(names, ",") + (several ? ",table" : "") + '\n';
  for (const Table& table : tables) {
    const std::vector<CsvField> fields = csv_fields(table);
    for (const auto& row : table.rows) {
      std::map<std::string, std::string> values;
      for (const auto& [k, part] : fields) {
        values[csv_name(table.columns[k], part)] = csv_value(table.columns[k], row[k], part);
      }
      std::vector<std::string> cells;
      for (const std::string& name : names) cells.push_back(values[name]);
      if (several) cells.push_back(csv_text(table.title));
      text += join(cells, ",") + '\n';
    }
  }
  return text;
}

std::string render(const std::vector<Table>& tables, Format format, const TextStyle& style) {
  if (format == Format::json) return render_json(tables);
  if (format == Format::csv) return render_csv(tables);
  std::string text;
  for (const Table& table : tables) {
    if (!text.empty()) text += '\n';
    text += format == Format::text    ? render_text(table, style)
            : format == Format::latex ? render_latex(table)
                                      : render_markdown(table);
  }
  return text;
}

namespace fs = std::filesystem;

namespace {

bool says_it_is_ours(const fs::path& file, const char* key) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return false;
  try {
    const Json json = Json::parse(read_text(file));
    return json.is_object() && json.contains("schema") && json.contains(key);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

OutputFile report_file(const fs::path& folder, const std::string& name) {
  return {folder / name, "--out", "report's", [folder](std::string_view) {
            return says_it_is_ours(folder / "report.json", "tables") ||
                   says_it_is_ours(folder / "collectives.json", "collectives") ||
                   says_it_is_ours(folder / "history.json", "history") ||
                   says_it_is_ours(folder / "prediction.json", "tables");
          }};
}

void check_report_folder(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code none;
  if (fs::exists(folder, none) && !fs::is_directory(folder, none)) {
    throw Error(ErrorKind::usage, "not a folder", folder.string(), "name another with --out");
  }
  for (const std::string& name : names) report_file(folder, name).check_name();
}

}  // namespace paceline
