#include <nlohmann/json.hpp>

#include "analysis/render.h"
#include "engine/core/json.h"

namespace paceline {

namespace {

Json value_of(const Column& column, const Cell& cell) {
  if (column.is_text) return cell.text.empty() ? Json(nullptr) : Json(cell.text);
  if (!cell.value) return nullptr;
  if (column.is_whole) return static_cast<std::int64_t>(*cell.value);
  return *cell.value;
}

Json row_of(const Table& table, const std::vector<Cell>& cells) {
  Json row = Json::object();
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const Column& column = table.columns[k];
    row[column.key] = value_of(column, cells[k]);
    if (!column.has_interval) continue;
    const auto& interval = cells[k].interval;
    row[column.key + "_low"] = interval ? Json(interval->low) : Json(nullptr);
    row[column.key + "_high"] = interval ? Json(interval->high) : Json(nullptr);
  }
  return row;
}

}  // namespace

std::string render_json(const std::vector<Table>& tables) {
  Json all = Json::array();
  for (const Table& table : tables) {
    Json rows = Json::array();
    for (const auto& cells : table.rows) rows.push_back(row_of(table, cells));
    all.push_back({{"title", table.title},
                   {"workload", table.workload},
                   {"precision", table.precision},
                   {"scaling", table.scaling},
                   {"base", table.base},
                   {"interval", table.interval},
                   {"rows", rows},
                   {"findings", table.findings},
                   {"notes", table.notes}});
  }
  const Json document = {{"schema", 1}, {"tables", all}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace paceline
