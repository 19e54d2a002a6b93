#include "analysis/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/escape.h"
#include "analysis/html.h"
#include "analysis/provenance.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"

namespace paceline {

namespace {

struct BenchColumn {
  std::string title, unit;
  std::function<std::string(const Json& row)> cell;
};

std::optional<double> number(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Empty where it is missing or null.
std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string in_unit(const Json& row, const char* key, double unit, int digits) {
  const auto value = number(row, key);
  return value ? decimal(*value / unit, digits) : "-";
}

std::string ratio(const Json& row, const char* above) {
  const auto other = number(row, above), ours = number(row, "seconds");
  return other && ours && *ours > 0 ? decimal(*other / *ours, 2) : "-";
}

std::string whole(const Json& row, const char* key) {
  const auto value = number(row, key);
  return value ? decimal(*value, 0) : "-";
}

bool any_has(const Json& rows, const char* key) {
  return std::any_of(rows.begin(), rows.end(),
                     [key](const Json& row) { return number(row, key).has_value(); });
}

std::vector<BenchColumn> columns_of(const Json& block) {
  const Json& rows = block.at("rows");
  const std::string type = text_of(block, "dtype"), library = text_of(block, "library");
  constexpr double kMicro = 1e-6, kGiga = 1e9;
  std::vector<BenchColumn> columns = {
      {"size", "(B)", [](const Json& r) { return whole(r, "bytes"); }},
      {"count", "(elements)", [](const Json& r) { return whole(r, "count"); }},
      {"type", "", [type](const Json&) { return type; }},
      {"redop", "", [](const Json&) { return std::string("sum"); }},
      {"time", "(us)", [](const Json& r) { return in_unit(r, "seconds", kMicro, 2); }},
      {"p95", "(us)", [](const Json& r) { return in_unit(r, "seconds_p95", kMicro, 2); }},
      {"algbw", "(GB/s)",
       [](const Json& r) { return in_unit(r, "algbw_bytes_per_second", kGiga, 2); }},
      {"busbw", "(GB/s)",
       [](const Json& r) { return in_unit(r, "busbw_bytes_per_second", kGiga, 2); }},
      {"#wrong", "", [](const Json& r) { return whole(r, "wrong"); }}};
  if (any_has(rows, "memcpy_seconds")) {
    columns.push_back(
        {"memcpy", "(us)", [](const Json& r) { return in_unit(r, "memcpy_seconds", kMicro, 2); }});
    columns.push_back({"of memcpy", "", [](const Json& r) { return ratio(r, "memcpy_seconds"); }});
  }
  if (any_has(rows, "library_seconds")) {
    columns.push_back(
        {library, "(us)", [](const Json& r) { return in_unit(r, "library_seconds", kMicro, 2); }});
    columns.push_back({"times it", "", [](const Json& r) { return ratio(r, "library_seconds"); }});
  }
  const bool labelled = std::any_of(rows.begin(), rows.end(),
                                    [](const Json& r) { return !text_of(r, "label").empty(); });
  if (labelled) {
    columns.push_back({"what", "", [](const Json& r) { return text_of(r, "label"); }});
  }
  return columns;
}

// Each once, in the order of ranks.
std::string hosts_of(const Json& provenance) {
  const auto hosts = provenance.find("hosts");
  if (hosts == provenance.end() || hosts->is_null()) return "an unknown host";
  std::vector<std::string> names;
  for (const Json& host : *hosts) {
    const auto name = host.get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return join(names, ", ");
}

std::string counted(int number, const char* noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string heading(const Record& record) {
  const Layout layout = record.layout();
  const Json& from = record.json().at("provenance");
  return fmt::format("all-reduce, {} in {} on {}, backend {}", counted(layout.gpus, "rank"),
                     counted(layout.ntasks, "task"), hosts_of(from),
                     text_of(from, "backend_asked"));
}

std::string head(const Record& record) {
  return fmt::format("# {}\n# {}\n# {}\n", printable(heading(record)),
                     printable(text_of(record.json().at("provenance"), "backend_used")),
                     printable(text_of(record.json().at("collective"), "note")));
}

std::string html_head(const Record& record) {
  const Json& from = record.json().at("provenance");
  std::string text = "<h3>" + html_text(heading(record)) + "</h3>\n<p>" +
                     html_text(text_of(from, "backend_used")) + "<br/>" +
                     html_text(text_of(record.json().at("collective"), "note"));
  const std::string command = typed_command(text_of(from, "command"));
  if (!command.empty()) text += "<br/><code>" + html_text(command) + "</code>";
  return text + "</p>\n";
}

std::string aligned(const std::vector<BenchColumn>& columns, const Json& rows) {
  std::vector<std::vector<std::string>> lines(2);
  for (const BenchColumn& column : columns) {
    lines[0].push_back(column.title);
    lines[1].push_back(column.unit);
  }
  for (const Json& row : rows) {
    lines.emplace_back();
    for (const BenchColumn& column : columns) lines.back().push_back(printable(column.cell(row)));
  }
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line = i < 2 ? "#" : " ";
    for (std::size_t c = 0; c < lines[i].size(); ++c) {
      line += fmt::format(" {:>{}}", lines[i][c], widths[c] + 1);
    }
    text += line + "\n";
  }
  return text;
}

std::string separated(const std::vector<BenchColumn>& columns, const Json& rows, bool markdown) {
  const auto line = [&](std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = markdown ? markdown_text(cell) : csv_text(cell);
    return markdown ? "| " + join(cells, " | ") + " |\n" : join(cells, ",") + "\n";
  };
  std::vector<std::string> titles;
  for (const BenchColumn& column : columns) {
    titles.push_back(column.unit.empty() ? column.title : column.title + " " + column.unit);
  }
  std::string text = line(titles);
  if (markdown) text += line(std::vector<std::string>(columns.size(), "---:"));
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const BenchColumn& column : columns) cells.push_back(column.cell(row));
    text += line(cells);
  }
  return text;
}

std::string as_html(const std::vector<BenchColumn>& columns, const Json& rows) {
  std::string text = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const BenchColumn& column : columns) {
    text += fmt::format("<th>{}<br/>{}</th>", html_text(column.title), html_text(column.unit));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const Json& row : rows) {
    text += "<tr>";
    for (const BenchColumn& column : columns)
      text += "<td>" + html_text(column.cell(row)) + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

// What a step would wait for its buckets if backward hid none of them.
std::string bucket_sum(const Json& rows) {
  double seconds = 0;
  for (const Json& row : rows) {
    if (text_of(row, "label").starts_with("bucket")) seconds += number(row, "seconds").value_or(0);
  }
  if (seconds == 0) return "";
  return fmt::format("# buckets one after another: {:.2f} us a step, if none is hidden\n",
                     seconds * 1e6);
}

std::string foot(const Json& block) {
  std::string text = bucket_sum(block.at("rows"));
  for (const Json& row : block.at("rows")) {
    const std::string wrong = text_of(row, "first_wrong");
    if (!wrong.empty()) text += "# wrong: " + printable(wrong) + "\n";
  }
  return text;
}

}  // namespace

std::string render_collectives(const std::vector<Record>& records, Format format) {
  if (format == Format::json) {
    Json all = Json::array();
    for (const Record& record : records) all.push_back(record.json());
    return json_text(Json({{"schema", 1}, {"collectives", all}}), 2) + "\n";
  }
  std::string text;
  for (const Record& record : records) {
    const Json& block = record.json().at("collective");
    const auto columns = columns_of(block);
    if (!text.empty()) text += "\n";
    if (format == Format::html) {
      text += html_head(record) + as_html(columns, block.at("rows"));
      continue;
    }
    if (format == Format::text) {
      text += head(record) + aligned(columns, block.at("rows")) + foot(block);
    } else {
      text += separated(columns, block.at("rows"), format == Format::markdown);
    }
  }
  return text;
}

}  // namespace paceline
