#include <nlohmann/json.hpp>

#include "analysis/render/render.h"
#include "engine/core/json.h"

namespace paceline {

namespace {

Json cell_json(const Column& column, const Cell& cell) {
  if (column.is_text) return cell.text.empty() ? Json(nullptr) : Json(cell.text);
  if (!cell.value) return nullptr;
  if (column.is_whole) return static_cast<std::int64_t>(*cell.value);
  return *cell.value;
}

Json row_json(const Table& table, const std::vector<Cell>& cells) {
  Json row = Json::object();
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const Column& column = table.columns[k];
    row[column.key] = cell_json(column, cells[k]);
    if (!column.has_interval) continue;
    const auto& interval = cells[k].interval;
    row[column.key + "_low"] = interval ? Json(interval->low) : Json(nullptr);
    row[column.key + "_high"] = interval ? Json(interval->high) : Json(nullptr);
  }
  return row;
}

Json broken_rules_json(const Table& table) {
  Json rules = Json::array();
  for (const BrokenRule& each : table.broken) {
    rules.push_back({{"rule", each.rule}, {"what", each.what}, {"fix", each.fix}});
  }
  return rules;
}

Json provenance_json(const Table& table) {
  Json facts = Json::object();
  for (const ProvenanceFact& fact : table.provenance) {
    Json values = Json::array();
    for (const auto& [value, runs] : fact.values) {
      values.push_back({{"value", value}, {"runs", runs}});
    }
    facts[fact.name] = values;
  }
  return facts;
}

Json work_json(const Table& table) {
  Json work = Json::object();
  for (const auto& [name, value] : table.work) {
    if (const auto* number = std::get_if<double>(&value)) {
      work[name] = *number;
    } else {
      work[name] = std::get<std::string>(value);
    }
  }
  return work;
}

Json controls_json(const Table& table) {
  Json all = Json::array();
  for (const ControlCheck& control : table.controls) {
    const Estimate& estimate = control.ratio.estimate;
    const auto& interval = estimate.interval;
    all.push_back({{"point", control.point},
                   {"runs", estimate.count},
                   {"ratio", estimate.value},
                   {"ratio_low", interval ? Json(interval->low) : Json(nullptr)},
                   {"ratio_high", interval ? Json(interval->high) : Json(nullptr)},
                   {"differs", control.differs()}});
  }
  return all;
}

}  // namespace

std::string render_json(const std::vector<Table>& tables) {
  Json all = Json::array();
  for (const Table& table : tables) {
    Json rows = Json::array();
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      rows.push_back(row_json(table, table.rows[i]));
      rows.back()["command"] = table.commands[i].empty() ? Json(nullptr) : Json(table.commands[i]);
    }
    all.push_back({{"title", table.title},
                   {"workload", table.workload},
                   {"precision", table.precision},
                   {"scaling", table.scaling},
                   {"work", work_json(table)},
                   {"base", table.base},
                   {"interval", table.interval},
                   {"rows", rows},
                   {"warnings", table.warnings},
                   {"findings", table.findings},
                   {"controls", controls_json(table)},
                   {"broken_rules", broken_rules_json(table)},
                   {"provenance", provenance_json(table)},
                   {"left_out", table.left_out},
                   {"notes", table.notes}});
  }
  const Json document = {{"schema", 1}, {"tables", all}};
  return json_text(document, 2) + '\n';
}

}  // namespace paceline
