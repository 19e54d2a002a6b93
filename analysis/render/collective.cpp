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

std::vector<BenchColumn> bench_columns_of(const CollectiveFacts& block) {
  using Row = const CollectiveRow&;
  constexpr double kMicro = 1e-6, kGiga = 1e9;
  const auto any = [&](const auto& has) {
    return std::any_of(block.rows.begin(), block.rows.end(), has);
  };
  std::vector<BenchColumn> columns = {
      {"size", "(B)", [](Row r) { return whole(r.bytes); }},
      {"count", "(elements)", [](Row r) { return whole(r.count); }},
      {"type", "", [type = block.dtype](Row) { return type; }},
      {"redop", "", [](Row) { return std::string("sum"); }},
      {"time", "(us)", [](Row r) { return in_unit(r.seconds, kMicro); }},
      {"p95", "(us)", [](Row r) { return in_unit(r.seconds_p95, kMicro); }},
      {"algbw", "(GB/s)", [](Row r) { return in_unit(r.algbw_bytes_per_second, kGiga); }},
      {"busbw", "(GB/s)", [](Row r) { return in_unit(r.busbw_bytes_per_second, kGiga); }},
      {"#wrong", "", [](Row r) { return whole(r.wrong); }}};
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

std::string hosts_of(const RunRecord& record) {
  const std::string hosts = record.hosts();
  return hosts.empty() ? "an unknown host" : hosts;
}

std::string heading(const RunRecord& record) {
  const Layout layout = record.task_layout();
  return fmt::format("all-reduce, {} in {} on {}, backend {}",
                     counted(static_cast<std::size_t>(layout.gpus), "rank"),
                     counted(static_cast<std::size_t>(layout.ntasks), "task"), hosts_of(record),
                     record.provenance.backend_asked);
}

std::string head(const RunRecord& record) {
  return fmt::format("# {}\n# {}\n# {}\n", printable(heading(record)),
                     printable(record.provenance.backend_used), printable(record.collective->note));
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
    const auto columns = bench_columns_of(*record->collective);
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
