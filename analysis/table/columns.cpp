#include "analysis/table/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

bool is_named(const Column& column, std::string_view name) {
  return column.key == name || column.group == name;
}

void check_known(const Table& table, const std::string& name) {
  std::set<std::string> known;
  for (const Column& column : table.columns) {
    known.insert(column.key);
    known.insert(column.group);
  }
  if (known.contains(name)) return;
  throw Error(ErrorKind::usage, fmt::format("there is no column or group \"{}\"", name),
              "--columns", suggestion(name, {known.begin(), known.end()}));
}

void keep(Table& table, const std::vector<bool>& kept) {
  const auto filter = [&](auto& cells) {
    std::size_t to = 0;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (!kept[k]) continue;
      if (to != k) cells[to] = std::move(cells[k]);
      ++to;
    }
    cells.resize(to);
  };
  filter(table.columns);
  for (auto& row : table.rows) filter(row);
}

}  // namespace

void choose_columns(Table& table, const std::vector<std::string>& choice) {
  if (choice.empty()) return;
  const auto is_change = [](const std::string& word) {
    return word.starts_with('+') || word.starts_with('-');
  };
  const bool replaces = !std::all_of(choice.begin(), choice.end(), is_change);
  std::vector<bool> kept;
  for (const Column& column : table.columns) {
    kept.push_back(column.group == "layout" || (!replaces && column.shown));
  }
  for (const std::string& word : choice) {
    const std::string name = is_change(word) ? word.substr(1) : word;
    check_known(table, name);
    for (std::size_t k = 0; k < kept.size(); ++k) {
      Column& column = table.columns[k];
      if (!is_named(column, name)) continue;
      kept[k] = !word.starts_with('-') || column.group == "layout";
      column.detail = 0;  // a terminal that is too narrow leaves out others first
      column.shown = column.shown || column.has_data;
    }
  }
  keep(table, kept);
  for (const Column& column : table.columns) {
    const std::string& note = column.has_data ? column.note : column.absence;
    const bool is_known =
        std::find(table.notes.begin(), table.notes.end(), note) != table.notes.end();
    if (!note.empty() && !is_known) table.notes.push_back(note);
  }
}

}  // namespace paceline
