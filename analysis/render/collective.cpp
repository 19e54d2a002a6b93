#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/findings/findings.h"
#include "analysis/render/render.h"
#include "analysis/study/labels.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

struct BenchColumn {
  std::string title, unit;
  std::function<std::string(std::size_t row)> cell;
};

// Of the rows of one record, which outlives it.
BenchColumn make_column(const CollectiveFacts& block, std::string title, std::string unit,
                        std::function<std::string(const CollectiveRow& row)> cell) {
  return {std::move(title), std::move(unit),
          [&block, cell = std::move(cell)](std::size_t row) { return cell(block.rows[row]); }};
}

std::string in_unit(const std::optional<double>& value, double unit) {
  return value ? decimal(*value / unit, 2) : "-";
}

std::string whole(const std::optional<std::int64_t>& count) {
  return count ? fmt::format("{}", *count) : "-";
}

std::string ratio(const std::optional<double>& other, const CollectiveRow& row) {
  return other ? decimal(*other / row.seconds, 2) : "-";
}

// By more than a tenth: then the time depends on who wrote the buffer last.
bool reuse_differs(const CollectiveRow& row) {
  if (!row.reused_seconds) return false;
  const double ratio = *row.reused_seconds / row.seconds;
  return ratio < 0.9 || ratio > 1.1;
}

// Of imported records only what their tool gave.
std::vector<BenchColumn> make_bench_columns(const RunRecord& record) {
  const CollectiveFacts& block = *record.collective;
  using Row = const CollectiveRow&;
  constexpr double kMicro = 1e-6, kGiga = 1e9;
  const auto any = [&](const auto& has) {
    return std::any_of(block.rows.begin(), block.rows.end(), has);
  };
  std::vector<BenchColumn> columns;
  const auto add = [&](const std::string& title, const std::string& unit,
                       std::function<std::string(Row)> cell) {
    columns.push_back(make_column(block, title, unit, std::move(cell)));
  };
  add("size", "(B)", [](Row r) { return whole(r.bytes); });
  add("count", "(elements)", [](Row r) { return whole(r.count); });
  add("type", "", [type = block.dtype](Row) { return type; });
  const bool is_ours = !record.provenance.imported;
  if (is_ours) add("redop", "", [](Row) { return std::string("sum"); });
  add("time", "(us)", [](Row r) { return in_unit(r.seconds, kMicro); });
  if (is_ours || any([](Row r) { return r.seconds_p95.has_value(); })) {
    add("p95", "(us)", [](Row r) { return in_unit(r.seconds_p95, kMicro); });
  }
  if (any([](Row r) { return r.negotiation_seconds.has_value(); })) {
    add("negotiation", "(us)", [](Row r) { return in_unit(r.negotiation_seconds, kMicro); });
  }
  if (is_ours || any([](Row r) { return r.algbw_bytes_per_second.has_value(); })) {
    add("algbw", "(GB/s)", [](Row r) { return in_unit(r.algbw_bytes_per_second, kGiga); });
  }
  if (is_ours || any([](Row r) { return r.busbw_bytes_per_second.has_value(); })) {
    add("busbw", "(GB/s)", [](Row r) { return in_unit(r.busbw_bytes_per_second, kGiga); });
  }
  if (is_ours || any([](Row r) { return r.wrong.has_value(); })) {
    add("#wrong", "", [](Row r) { return whole(r.wrong); });
  }
  if (any([](Row r) { return r.memcpy_seconds.has_value(); })) {
    add("memcpy", "(us)", [](Row r) { return in_unit(r.memcpy_seconds, kMicro); });
    add("of memcpy", "", [](Row r) { return ratio(r.memcpy_seconds, r); });
  }
  if (any(reuse_differs)) {
    add("reused", "(us)", [](Row r) { return in_unit(r.reused_seconds, kMicro); });
  }
  if (any([](Row r) { return !r.label.empty(); })) {
    add("what", "", [](Row r) { return r.label; });
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
  text += ", backend " + record.provenance.backend_requested;
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

std::string aligned(const std::vector<BenchColumn>& columns, std::size_t rows) {
  std::vector<std::vector<std::string>> lines(2);
  for (const BenchColumn& column : columns) {
    lines[0].push_back(column.title);
    lines[1].push_back(column.unit);
  }
  for (std::size_t row = 0; row < rows; ++row) {
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

std::string separated(const std::vector<BenchColumn>& columns, std::size_t rows, bool markdown) {
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
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<std::string> cells;
    for (const BenchColumn& column : columns) cells.push_back(column.cell(row));
    text += line(cells);
  }
  return text;
}

std::string as_html(const std::vector<BenchColumn>& columns, std::size_t rows) {
  std::string text = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const BenchColumn& column : columns) {
    text += fmt::format("<th>{}<br/>{}</th>", html_text(column.title), html_text(column.unit));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < rows; ++row) {
    text += "<tr>";
    for (const BenchColumn& column : columns)
      text += "<td>" + html_text(column.cell(row)) + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

// What a step would wait for its buckets if backward hid none of them, and sums that are wrong.
std::vector<std::string> foot_lines(const std::vector<CollectiveRow>& rows) {
  std::vector<std::string> lines;
  double seconds = 0;
  for (const CollectiveRow& row : rows) {
    if (row.label.starts_with("bucket")) seconds += row.seconds;
  }
  if (seconds > 0) {
    lines.push_back(fmt::format("buckets one after another: {:.2f} us a step, if none is hidden",
                                seconds * 1e6));
  }
  for (const CollectiveRow& row : rows) {
    if (!row.first_wrong.empty()) lines.push_back("wrong: " + printable(row.first_wrong));
  }
  return lines;
}

// Whether the times of both may stand side by side: measured here, of the same sizes, ranks and
// hosts.
bool is_comparable(const RunRecord& a, const RunRecord& b) {
  const CollectiveFacts &one = *a.collective, &other = *b.collective;
  const auto same_size = [](const CollectiveRow& x, const CollectiveRow& y) {
    return x.bytes == y.bytes && x.label == y.label;
  };
  return !a.provenance.imported && !b.provenance.imported && one.operation == other.operation &&
         one.dtype == other.dtype && a.layout.gpus == b.layout.gpus && a.hosts() == b.hosts() &&
         std::equal(one.rows.begin(), one.rows.end(), other.rows.begin(), other.rows.end(),
                    same_size);
}

std::optional<double> median_memcpy(const std::vector<const RunRecord*>& records, std::size_t row) {
  std::vector<double> times;
  for (const RunRecord* record : records) {
    if (const auto& time = record->collective->rows[row].memcpy_seconds) times.push_back(*time);
  }
  if (times.empty()) return std::nullopt;
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) / 2];
}

// A time column for each backend.
std::vector<BenchColumn> side_by_side(const std::vector<const RunRecord*>& records) {
  constexpr double kMicro = 1e-6;
  const CollectiveFacts& first = *records.front()->collective;
  std::vector<BenchColumn> columns = {
      make_column(first, "size", "(B)", [](const CollectiveRow& r) { return whole(r.bytes); })};
  if (median_memcpy(records, 0)) {
    columns.push_back({"memcpy", "(us)", [records](std::size_t row) {
                         return in_unit(median_memcpy(records, row), kMicro);
                       }});
  }
  std::vector<BenchColumn> reused;
  for (const RunRecord* record : records) {
    const CollectiveFacts& block = *record->collective;
    const std::string& backend = record->provenance.backend_requested;
    columns.push_back(make_column(
        block, backend, "(us)", [](const CollectiveRow& r) { return in_unit(r.seconds, kMicro); }));
    if (std::any_of(block.rows.begin(), block.rows.end(), reuse_differs)) {
      reused.push_back(make_column(block, backend + " reused", "(us)", [](const CollectiveRow& r) {
        return in_unit(r.reused_seconds, kMicro);
      }));
    }
  }
  columns.insert(columns.end(), reused.begin(), reused.end());
  const auto any_wrong = [records](std::size_t row) {
    std::int64_t wrong = 0;
    for (const RunRecord* record : records)
      wrong += record->collective->rows[row].wrong.value_or(0);
    return wrong;
  };
  columns.push_back(
      {"#wrong", "", [any_wrong](std::size_t row) { return fmt::format("{}", any_wrong(row)); }});
  if (!first.rows.front().label.empty()) {
    columns.push_back(
        make_column(first, "what", "", [](const CollectiveRow& r) { return r.label; }));
  }
  return columns;
}

std::vector<std::string> heading_lines(const std::vector<const RunRecord*>& records) {
  const RunRecord& first = *records.front();
  std::vector<std::string> lines = {
      fmt::format("all-reduce of {}, {} on {}", first.collective->dtype,
                  counted(first.layout.gpus, "rank"), first.hosts()),
      first.collective->note};
  for (const RunRecord* record : records) {
    lines.push_back(record->provenance.backend_requested + ": " + record->provenance.backend_used);
  }
  return lines;
}

std::string render_together(const std::vector<const RunRecord*>& records, Format format) {
  const auto columns = side_by_side(records);
  const std::size_t rows = records.front()->collective->rows.size();
  std::string text;
  if (format == Format::html) {
    const auto lines = heading_lines(records);
    text = "<h3>" + html_text(lines.front()) + "</h3>\n<p>";
    for (std::size_t i = 1; i < lines.size(); ++i) text += html_text(lines[i]) + "<br/>";
    return text + "</p>\n" + as_html(columns, rows);
  }
  if (format != Format::text) return separated(columns, rows, format == Format::markdown);
  for (const std::string& line : heading_lines(records)) text += "# " + printable(line) + "\n";
  text += aligned(columns, rows);
  for (const RunRecord* record : records) {
    for (const std::string& line : foot_lines(record->collective->rows)) {
      text += "# " + record->provenance.backend_requested + ": " + line + "\n";
    }
  }
  return text;
}

std::string render_alone(const RunRecord& record, Format format) {
  const std::vector<CollectiveRow>& rows = record.collective->rows;
  const auto columns = make_bench_columns(record);
  if (format == Format::html) return html_head(record) + as_html(columns, rows.size());
  if (format != Format::text) return separated(columns, rows.size(), format == Format::markdown);
  std::string text = head(record) + aligned(columns, rows.size());
  for (const std::string& line : foot_lines(rows)) text += "# " + line + "\n";
  return text;
}

// In the order of the first of each group.
std::vector<std::vector<const RunRecord*>> comparable_groups(const std::vector<Record>& records) {
  std::vector<std::vector<const RunRecord*>> groups;
  for (const Record& record : records) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) {
      return is_comparable(*each.front(), *record);
    });
    if (group == groups.end()) {
      groups.push_back({&*record});
    } else {
      group->push_back(&*record);
    }
  }
  return groups;
}

}  // namespace

std::string render_collectives(const std::vector<Record>& records, Format format) {
  if (format == Format::json) {
    Json all = Json::array();
    for (const Record& record : records) all.push_back(record.json());
    return json_text(Json({{"schema", 1}, {"collectives", all}}), 2) + "\n";
  }
  std::string text;
  for (const auto& group : comparable_groups(records)) {
    if (!text.empty()) text += "\n";
    text +=
        group.size() == 1 ? render_alone(*group.front(), format) : render_together(group, format);
  }
  return text;
}

}  // namespace paceline
