#include "analysis/render/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/findings/provenance.h"
#include "analysis/render/markup.h"
#include "analysis/study/point_names.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"

namespace paceline {

namespace {

struct BenchColumn {
  std::string title, unit;
  std::function<std::string(const CollectiveRow& row)> cell;
};

std::string in_unit(const std::optional<double>& value, double unit) {
  return value ? decimal(*value / unit, 2) : "-";
}

std::string whole(const std::optional<std::int64_t>& count) {
  return count ? fmt::format("{}", *count) : "-";
}

std::string ratio(const std::optional<double>& other, const CollectiveRow& row) {
  return other ? decimal(*other / row.seconds, 2) : "-";
}

// Of imported records only what their tool gave.
std::vector<BenchColumn> bench_columns_of(const RunRecord& record) {
  const CollectiveFacts& block = *record.collective;
  using Row = const CollectiveRow&;
  constexpr double kMicro = 1e-6, kGiga = 1e9;
  const auto any = [&](const auto& has) {
    return std::any_of(block.rows.begin(), block.rows.end(), has);
  };
  std::vector<BenchColumn> columns = {{"size", "(B)", [](Row r) { return whole(r.bytes); }},
                                      {"count", "(elements)", [](Row r) { return whole(r.count); }},
                                      {"type", "", [type = block.dtype](Row) { return type; }}};
  const bool is_ours = !record.provenance.imported;
  if (is_ours) columns.push_back({"redop", "", [](Row) { return std::string("sum"); }});
  columns.push_back({"time", "(us)", [](Row r) { return in_unit(r.seconds, kMicro); }});
  if (is_ours || any([](Row r) { return r.seconds_p95.has_value(); })) {
    columns.push_back({"p95", "(us)", [](Row r) { return in_unit(r.seconds_p95, kMicro); }});
  }
  if (any([](Row r) { return r.negotiation_seconds.has_value(); })) {
    columns.push_back(
        {"negotiation", "(us)", [](Row r) { return in_unit(r.negotiation_seconds, kMicro); }});
  }
  if (is_ours || any([](Row r) { return r.algbw_bytes_per_second.has_value(); })) {
    columns.push_back(
        {"algbw", "(GB/s)", [](Row r) { return in_unit(r.algbw_bytes_per_second, kGiga); }});
  }
  if (is_ours || any([](Row r) { return r.busbw_bytes_per_second.has_value(); })) {
    columns.push_back(
        {"busbw", "(GB/s)", [](Row r) { return in_unit(r.busbw_bytes_per_second, kGiga); }});
  }
  if (is_ours || any([](Row r) { return r.wrong.has_value(); })) {
    columns.push_back({"#wrong", "", [](Row r) { return whole(r.wrong); }});
  }
  if (any([](Row r) { return r.memcpy_seconds.has_value(); })) {
    columns.push_back({"memcpy", "(us)", [](Row r) { return in_unit(r.memcpy_seconds, kMicro); }});
    columns.push_back({"of memcpy", "", [](Row r) { return ratio(r.memcpy_seconds, r); }});
  }
  if (any([](Row r) { return r.library_seconds.has_value(); })) {
    columns.push_back(
        {block.library, "(us)", [](Row r) { return in_unit(r.library_seconds, kMicro); }});
    columns.push_back({"times it", "", [](Row r) { return ratio(r.library_seconds, r); }});
  }
  if (any([](Row r) { return !r.label.empty(); })) {
    columns.push_back({"what", "", [](Row r) { return r.label; }});
  }
  return columns;
}

// "all-reduce, 8 ranks in 8 tasks on n1, n2, backend mpi, imported from nccl-tests (links.txt)". Of
// an import only what its file says.
std::string heading(const RunRecord& record) {
  const auto& imported = record.provenance.imported;
  const LayoutFacts& layout = record.layout;
  std::string text = record.collective->operation;
  if (text.empty()) text = "all_reduce";
  std::replace(text.begin(), text.end(), '_', '-');
  text += ", " + counted(static_cast<std::size_t>(layout.gpus), "rank");
  if (!imported || layout.ntasks) {
    text += " in " + counted(static_cast<std::size_t>(layout.ntasks.value_or(1)), "task");
  }
  const std::string hosts = record.hosts();
  if (!imported || !hosts.empty()) text += " on " + (hosts.empty() ? "an unknown host" : hosts);
  text += ", backend " + record.provenance.backend_asked;
  if (imported) text += ", imported from " + imported->tool + " (" + imported->file + ")";
  return text;
}

std::string head(const RunRecord& record) {
  std::string text;
  for (const std::string& line :
       {heading(record), record.provenance.backend_used, record.collective->note}) {
    if (!line.empty()) text += "# " + printable(line) + "\n";
  }
  return text;
}

std::string html_head(const RunRecord& record) {
  std::string text = "<h3>" + html_text(heading(record)) + "</h3>\n<p>" +
                     html_text(record.provenance.backend_used) + "<br/>" +
                     html_text(record.collective->note);
  const std::string command = typed_command(record.provenance.command);
  if (!command.empty()) text += "<br/><code>" + html_text(command) + "</code>";
  return text + "</p>\n";
}

std::string aligned(const std::vector<BenchColumn>& columns,
                    const std::vector<CollectiveRow>& rows) {
  std::vector<std::vector<std::string>> lines(2);
  for (const BenchColumn& column : columns) {
    lines[0].push_back(column.title);
    lines[1].push_back(column.unit);
  }
  for (const CollectiveRow& row : rows) {
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

std::string separated(const std::vector<BenchColumn>& columns,
                      const std::vector<CollectiveRow>& rows, bool markdown) {
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
  for (const CollectiveRow& row : rows) {
    std::vector<std::string> cells;
    for (const BenchColumn& column : columns) cells.push_back(column.cell(row));
    text += line(cells);
  }
  return text;
}

std::string as_html(const std::vector<BenchColumn>& columns,
                    const std::vector<CollectiveRow>& rows) {
  std::string text = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const BenchColumn& column : columns) {
    text += fmt::format("<th>{}<br/>{}</th>", html_text(column.title), html_text(column.unit));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const CollectiveRow& row : rows) {
    text += "<tr>";
    for (const BenchColumn& column : columns)
      text += "<td>" + html_text(column.cell(row)) + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

// What a step would wait for its buckets if backward hid none of them.
std::string bucket_sum(const std::vector<CollectiveRow>& rows) {
  double seconds = 0;
  for (const CollectiveRow& row : rows) {
    if (row.label.starts_with("bucket")) seconds += row.seconds;
  }
  if (seconds == 0) return "";
  return fmt::format("# buckets one after another: {:.2f} us a step, if none is hidden\n",
                     seconds * 1e6);
}

std::string foot(const std::vector<CollectiveRow>& rows) {
  std::string text = bucket_sum(rows);
  for (const CollectiveRow& row : rows) {
    if (!row.first_wrong.empty()) text += "# wrong: " + printable(row.first_wrong) + "\n";
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
    const std::vector<CollectiveRow>& rows = record->collective->rows;
    const auto columns = bench_columns_of(*record);
    if (!text.empty()) text += "\n";
    if (format == Format::html) {
      text += html_head(*record) + as_html(columns, rows);
      continue;
    }
    if (format == Format::text) {
      text += head(*record) + aligned(columns, rows) + foot(rows);
    } else {
      text += separated(columns, rows, format == Format::markdown);
    }
  }
  return text;
}

}  // namespace paceline
