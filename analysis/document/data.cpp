// Documents for programs: CSV and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/document/document.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// The fields of a CSV line, in order: {"speed_up", "1.84"}, {"speed_up_low", "1.8"}, ...
using CsvLine = std::vector<std::pair<std::string, std::string>>;

CsvLine csv_line(const Table& table, const std::vector<Cell>& cells) {
  CsvLine line;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const Column& column = table.columns[k];
    const auto& [text, value, interval, links] = cells[k];
    line.emplace_back(column.key, column.is_text ? csv_text(text)
                                  : value        ? fmt::format("{}", *value)
                                                 : "");
    if (!column.has_interval) continue;
    line.emplace_back(column.key + "_low", interval ? fmt::format("{}", interval->low) : "");
    line.emplace_back(column.key + "_high", interval ? fmt::format("{}", interval->high) : "");
  }
  return line;
}

Json cell_json(const Column& column, const Cell& cell) {
  if (column.is_text) return cell.text.empty() ? Json(nullptr) : Json(cell.text);
  if (!cell.value) return nullptr;
  if (column.is_flag) return *cell.value != 0;
  if (column.is_whole) return static_cast<std::int64_t>(*cell.value);
  return *cell.value;
}

void merge(Json& into, const Json& from) {
  for (const auto& [key, value] : from.items()) into[key] = value;
}

void merge(Json& into, const Section& section) {
  if (section.facts) merge(into, *section.facts);
  if (section.table.key.empty() || section.table.columns.empty()) return;
  into[section.table.key] = to_json(section.table);
}

Json section_json(const Section& section) {
  Json findings = Json::array();
  for (const Statement& each : section.findings) findings.push_back(each.text);
  Json json = {{"title", section.title},
               {"warnings", section.warnings},
               {"findings", findings},
               {"notes", all_notes(section)}};
  merge(json, section);
  return json;
}

}  // namespace

Facts make_facts(Json json) {
  return std::make_shared<const Json>(std::move(json));
}

Json to_json(const Table& table) {
  Json rows = Json::array();
  for (const std::vector<Cell>& cells : table.rows) {
    Json& row = rows.emplace_back(Json::object());
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const Column& column = table.columns[k];
      row[column.key] = cell_json(column, cells[k]);
      if (!column.has_interval) continue;
      const auto& interval = cells[k].interval;
      row[column.key + "_low"] = interval ? Json(interval->low) : Json(nullptr);
      row[column.key + "_high"] = interval ? Json(interval->high) : Json(nullptr);
    }
  }
  return rows;
}

std::string to_json_text(const Document& document) {
  Json json = {{"schema", document.schema}};
  if (document.facts) merge(json, *document.facts);
  if (!document.list.empty()) json[document.list] = Json::array();
  for (const Section& section : document.sections) {
    if (document.list.empty()) {
      merge(json, section);
    } else if (section.shown != Visibility::on_pages) {
      json[document.list].push_back(section_json(section));
    }
  }
  return json_text(json, 2) + '\n';
}

// Columns keep the order of their tables; one that only some tables have stands where it has there.
std::string to_csv(const Document& document) {
  std::vector<std::pair<CsvLine, const Section*>> lines;
  std::vector<std::string> names;
  std::size_t tables = 0;
  for (const Section& section : document.sections) {
    tables += section.table.columns.empty() ? 0 : 1;
    auto place = names.begin();
    const std::vector<Cell> empty(section.table.columns.size());
    for (const auto& [name, value] : csv_line(section.table, empty)) {
      const auto known = std::find(names.begin(), names.end(), name);
      place = (known == names.end() ? names.insert(place, name) : known) + 1;
    }
    for (const auto& row : section.table.rows) {
      lines.emplace_back(csv_line(section.table, row), &section);
    }
  }
  std::string text = join(names, ",") + (tables > 1 ? ",table\n" : "\n");
  for (const auto& [line, section] : lines) {
    std::vector<std::string> cells(names.size());
    for (const auto& [name, value] : line) {
      cells[static_cast<std::size_t>(std::ranges::find(names, name) - names.begin())] = value;
    }
    if (tables > 1) cells.push_back(csv_text(section->title));
    text += join(cells, ",") + '\n';
  }
  return text;
}

}  // namespace paceline
