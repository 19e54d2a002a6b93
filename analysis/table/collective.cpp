#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/findings/findings.h"
#include "analysis/table/table.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// The rows of one size, one of each record that is compared.
struct SizeRow {
  std::vector<const CollectiveRow*> rows;

  const CollectiveRow& first() const { return *rows.front(); }
};

using SizeColumns = ColumnsOf<SizeRow>;

constexpr double kMicro = 1e-6, kGiga = 1e9;

Cell in_unit(const std::optional<double>& value, double unit) {
  return value ? Cell{decimal(*value / unit, 2), value} : Cell{};
}

// A column of the i-th record.
void add_seconds(SizeColumns& columns, const std::string& key, const std::string& heading,
                 std::optional<double> CollectiveRow::*member, std::size_t i = 0) {
  columns.real(key, heading + "\n(us)",
               [=](const SizeRow& row) { return in_unit(row.rows[i]->*member, kMicro); });
}

// Whether it differs by more than a tenth: then the time depends on who wrote the buffer last.
bool reuse_differs(const CollectiveRow& row) {
  if (!row.reused_seconds) return false;
  const double ratio = *row.reused_seconds / row.seconds;
  return ratio < 0.9 || ratio > 1.1;
}

SizeColumns begin_columns() {
  return SizeColumns()
      .whole("bytes", "size\n(B)", [](const SizeRow& r) { return r.first().bytes; })
      .essential();
}

void end_columns(SizeColumns& columns) {
  columns.whole("wrong", "#wrong", [](const SizeRow& r) {
    std::optional<std::int64_t> wrong;
    for (const CollectiveRow* each : r.rows) {
      if (each->wrong) wrong = wrong.value_or(0) + *each->wrong;
    }
    return wrong;
  });
  columns.text("what", "what", [](const SizeRow& r) { return r.first().label; });
}

// Columns for one record; for an imported one, only what its tool gave.
SizeColumns columns_alone(const RunRecord& record) {
  using Row = const SizeRow&;
  SizeColumns columns = begin_columns();
  columns.whole("count", "count\n(elements)", [](Row r) { return r.first().count; });
  columns.text("type", "type", [type = record.collective->dtype](Row) { return type; });
  if (!record.provenance.imported) columns.text("redop", "redop", [](Row) { return "sum"; });
  columns.real("seconds", "time\n(us)", [](Row r) { return in_unit(r.first().seconds, kMicro); });
  add_seconds(columns, "seconds_p95", "p95", &CollectiveRow::seconds_p95);
  columns.real("algbw_bytes_per_second", "algbw\n(GB/s)",
               [](Row r) { return in_unit(r.first().algbw_bytes_per_second, kGiga); });
  columns.real("busbw_bytes_per_second", "busbw\n(GB/s)",
               [](Row r) { return in_unit(r.first().busbw_bytes_per_second, kGiga); });
  add_seconds(columns, "memcpy_seconds", "memcpy", &CollectiveRow::memcpy_seconds);
  columns.real("of_memcpy", "of\nmemcpy", [](Row r) {
    const auto& memcpy = r.first().memcpy_seconds;
    return memcpy ? in_unit(*memcpy / r.first().seconds, 1) : Cell{};
  });
  if (std::ranges::any_of(record.collective->rows, reuse_differs)) {
    add_seconds(columns, "reused_seconds", "reused", &CollectiveRow::reused_seconds);
  }
  end_columns(columns);
  return columns;
}

// "all-reduce, 8 ranks in 8 tasks on n1, n2, backend mpi, imported from nccl-tests (links.txt)". Of
// an import only what its file says.
std::string heading(const RunRecord& record) {
  const auto& imported = record.provenance.imported;
  const LayoutFacts& layout = record.layout;
  std::string text = record.collective->operation;
  if (text.empty()) text = "all_reduce";
  std::ranges::replace(text, '_', '-');
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

// How long a step would wait for its buckets if backward hid none of them, and wrong sums.
void add_findings(Section& section, const RunRecord& record, const std::string& prefix = "") {
  double seconds = 0;
  for (const CollectiveRow& row : record.collective->rows) {
    if (row.label.starts_with("bucket")) seconds += row.seconds;
  }
  if (seconds > 0) {
    section.findings.emplace_back(
        fmt::format("{}buckets one after another: {:.2f} us a step, if none is hidden", prefix,
                    seconds / kMicro));
  }
  for (const CollectiveRow& row : record.collective->rows) {
    if (!row.first_wrong.empty()) {
      section.findings.emplace_back(prefix + "wrong: " + row.first_wrong);
    }
  }
}

// What a record's column is called: imports are of versions of a library.
std::string column_name(const RunRecord& record) {
  const Provenance& made = record.provenance;
  return made.imported && !made.libraries.empty() ? made.libraries : made.backend_requested;
}

// Whether the times of both may stand side by side: of the same sizes, ranks and hosts; imported
// ones by two versions of a library.
bool is_comparable(const RunRecord& a, const RunRecord& b) {
  const CollectiveFacts &one = *a.collective, &other = *b.collective;
  const bool is_import = a.provenance.imported.has_value();
  if (is_import != b.provenance.imported.has_value() || one.placement != other.placement ||
      (is_import && column_name(a) == column_name(b))) {
    return false;
  }
  const auto same_size = [](const CollectiveRow& x, const CollectiveRow& y) {
    return x.bytes == y.bytes && x.label == y.label;
  };
  return one.operation == other.operation && one.dtype == other.dtype &&
         a.layout.gpus == b.layout.gpus && a.hosts() == b.hosts() &&
         std::equal(one.rows.begin(), one.rows.end(), other.rows.begin(), other.rows.end(),
                    same_size);
}

std::optional<double> median_memcpy(const SizeRow& row) {
  std::vector<double> times = known_values(row.rows, &CollectiveRow::memcpy_seconds);
  if (times.empty()) return std::nullopt;
  std::ranges::sort(times);
  return times[(times.size() - 1) / 2];
}

// A time column for each backend; behind them, what reused buffers take.
SizeColumns columns_together(const std::vector<const RunRecord*>& records) {
  SizeColumns columns = begin_columns();
  columns.real("memcpy_seconds", "memcpy\n(us)",
               [](const SizeRow& r) { return in_unit(median_memcpy(r), kMicro); });
  const auto name = [&](std::size_t i) { return column_name(*records[i]); };
  for (std::size_t i = 0; i < records.size(); ++i) {
    columns.real(name(i) + "_seconds", name(i) + "\n(us)",
                 [i](const SizeRow& r) { return in_unit(r.rows[i]->seconds, kMicro); });
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (std::ranges::none_of(records[i]->collective->rows, reuse_differs)) continue;
    add_seconds(columns, name(i) + "_reused_seconds", name(i) + " reused",
                &CollectiveRow::reused_seconds, i);
  }
  if (records.size() == 2 && records.front()->provenance.imported) {
    columns.real("change", "change\n(%)", [](const SizeRow& r) {
      const double change = r.rows[1]->seconds / r.rows[0]->seconds - 1;
      return Cell{fmt::format("{:+.1f}", 100 * change), change};
    });
  }
  end_columns(columns);
  return columns;
}

// Of a node that wrote the record, where sums cross it.
std::string network_note(const RunRecord& record) {
  const std::string ports = describe_ports(record.provenance.machine.network);
  return record.layout.nodes.value_or(1) > 1 && !ports.empty() ? "network of a node: " + ports : "";
}

Section section_alone(const RunRecord& record) {
  Section section{
      .title = heading(record),
      .notes = {record.provenance.backend_used, network_note(record), record.collective->note}};
  section.code = typed_command(record.provenance.command);
  add_findings(section, record);
  return section;
}

Section section_together(const std::vector<const RunRecord*>& records) {
  const RunRecord& first = *records.front();
  Section section{.title = fmt::format("all-reduce of {}, {} on {}", first.collective->dtype,
                                       counted(first.layout.gpus, "rank"), first.hosts()),
                  .notes = {network_note(first), first.collective->note}};
  const auto& imported = first.provenance.imported;
  if (imported) {
    section.title = heading(first);
    section.title.resize(section.title.find(", backend"));
    section.notes.emplace_back(
        "import three runs of each, and paceline gate --baseline A --current B shows at which "
        "sizes they differ: the mean of one run's calls has no interval");
  }
  for (const RunRecord* record : records) {
    const std::string backend = column_name(*record);
    section.notes.push_back(
        backend + ": " +
        (imported ? record->provenance.imported->file : record->provenance.backend_used));
    add_findings(section, *record, backend + ": ");
  }
  return section;
}

// Groups are in the order of their first records.
std::vector<std::vector<const RunRecord*>> comparable_groups(const std::vector<Record>& records) {
  std::vector<std::vector<const RunRecord*>> groups;
  for (const Record& record : records) {
    const auto group = std::ranges::find_if(groups, [&](const auto& each) {
      return std::ranges::all_of(
          each, [&](const RunRecord* one) { return is_comparable(*one, *record); });
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

Document collectives_document(const std::vector<Record>& records) {
  Document document{.name = "collectives", .title = "All-reduce"};
  for (const auto& group : comparable_groups(records)) {
    const bool is_alone = group.size() == 1;
    Section section = is_alone ? section_alone(*group.front()) : section_together(group);
    std::erase(section.notes, "");
    std::vector<SizeRow> rows(group.front()->collective->rows.size());
    for (const RunRecord* record : group) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].rows.push_back(&record->collective->rows[i]);
      }
    }
    section.table =
        (is_alone ? columns_alone(*group.front()) : columns_together(group)).table(rows, "");
    document.sections.push_back(std::move(section));
  }
  Json all = Json::array();
  for (const Record& record : records) all.push_back(record.json());
  document.facts = make_facts({{"collectives", std::move(all)}});
  return document;
}

}  // namespace paceline
