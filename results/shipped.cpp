#include "results/shipped.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "results/run_record.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> roots() {
  return {program_file().parent_path() / "../share/paceline", fs::path(PACELINE_SOURCE)};
}

// By their names without ".json".
std::map<std::string, fs::path> shipped_in(const std::string& folder) {
  std::error_code code;
  std::map<std::string, fs::path> files;
  for (const fs::path& root : roots()) {
    for (fs::directory_iterator entry(root / folder, code), end; !code && entry != end;
         entry.increment(code)) {
      if (entry->path().extension() == ".json") {
        files.emplace(entry->path().stem().string(), entry->path().lexically_normal());
      }
    }
    code.clear();
  }
  return files;
}

[[noreturn]] void fail(const std::string& what, const std::string& where, const std::string& fix) {
  throw input_error(what, where, fix);
}

TableColumn read_column(const JsonDocument& description, const std::string& name) {
  const std::string path = "/columns/" + name;
  const std::string where = description.where(path);
  const Json& json = description.value().at("columns").at(name);
  TableColumn column;
  try {
    for (const Json& to : json.at("to")) {
      column.to.push_back(Json::json_pointer(to.get<std::string>()).to_string());
    }
    column.is_text = json.value("text", false);
    column.scale = json.value("scale", 1.0);
  } catch (const Json::exception&) {
    fail(fmt::format("column \"{}\" has no valid description", name), where,
         R"(write {"to": ["/timing/fit_seconds"], "scale": 1})");
  }
  return column;
}

std::vector<TableColumn> read_columns(const JsonDocument& description, const CsvRow& header) {
  const Json& json = description.value();
  for (const char* key : {"record", "columns"}) {
    if (!json.is_object() || !json.contains(key) || !json.at(key).is_object()) {
      fail(fmt::format("has no object \"{}\"", key), description.name(),
           "see results/reference/README.md");
    }
  }
  std::vector<std::string> known;
  for (const auto& [name, value] : json.at("columns").items()) known.push_back(name);
  std::vector<TableColumn> columns;
  for (const std::string& name : header.cells) {
    if (!json.at("columns").contains(name)) {
      fail(fmt::format("column \"{}\" of {} is not described", name, kPublishedRows),
           description.where("/columns"), suggestion(name, known));
    }
    columns.push_back(read_column(description, name));
  }
  return columns;
}

Json make_record(const Json& shared, const std::string& study, int row) {
  Json record = {
      {"schema", kRecordSchema}, {"kind", "published"}, {"study", study},       {"point", ""},
      {"repeat", row},           {"attempt", 1},        {"status", "completed"}};
  record.update(shared, true);
  return record;
}

}  // namespace

fs::path shipped_path(const fs::path& relative) {
  std::error_code code;
  if (relative.empty() || relative.is_absolute()) return "";
  for (const fs::path& root : roots()) {
    if (fs::exists(root / relative, code)) return (root / relative).lexically_normal();
  }
  return "";
}

std::vector<std::string> shipped_names(const std::string& folder) {
  return mapped(shipped_in(folder), [](const auto& each) { return each.first; });
}

fs::path find_shipped(const fs::path& given, const std::string& folder) {
  if (path_exists(given)) return given;
  if (const fs::path found = shipped_path(given); !found.empty()) return found;
  const auto files = shipped_in(folder);
  const bool is_name =
      !given.has_parent_path() && (given.extension() == ".json" || !given.has_extension());
  if (is_name) {
    if (const auto found = files.find(given.stem().string()); found != files.end()) {
      return found->second;
    }
  }
  const std::vector<std::string> names = shipped_names(folder);
  const auto near = nearest(given.stem().string(), names);
  const std::string fix = near ? "did you mean " + folder + "/" + *near + ".json?"
                          : names.empty() || !is_name ? "check the path"
                                                      : "shipped are: " + join(names, ", ");
  throw input_error("no such file", given.string(), fix);
}

bool is_published(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / kPublishedDescription, ignored);
}

std::vector<Record> read_published(const std::filesystem::path& folder) {
  const JsonDocument description = read_json(folder / kPublishedDescription);
  const std::string name = (folder / kPublishedRows).string();
  const std::vector<CsvRow> rows = parse_csv(read_text(name), name);
  if (rows.size() < 2) fail("has no rows", name, "give a header and a row a result");
  const std::vector<TableColumn> columns = read_columns(description, rows[0]);
  const std::string study = std::filesystem::absolute(folder / kPublishedRows)
                                .lexically_normal()
                                .parent_path()
                                .filename()
                                .string();
  return records_of_table(rows, columns, description.value().at("record"), study, name);
}

void put_cell(Json& record, const TableColumn& column, const std::string& cell,
              const std::string& where) {
  if (cell.empty() || column.to.empty()) return;  // the page does not say, or no record takes it
  Json value = cell;
  if (!column.is_text && (cell == "true" || cell == "false")) {
    value = cell == "true";
  } else if (!column.is_text) {
    const auto integer = to_integer(cell);
    const auto real = to_real(cell);
    if (!real) {
      fail(fmt::format("\"{}\" is not a number", cell), where,
           column.is_time ? "write seconds, or h:mm:ss" : "fix the cell");
    }
    if (integer && column.scale == 1) {
      value = *integer;
    } else {
      const double scaled = *real * column.scale;
      constexpr double kMostWhole = 9e15;  // "8*8" GPUs are counted
      const bool is_whole = scaled == std::floor(scaled) && std::abs(scaled) < kMostWhole;
      value = is_whole ? Json(static_cast<std::int64_t>(scaled)) : Json(scaled);
      if (!std::isfinite(scaled)) {
        fail(fmt::format("\"{}\" times {:g} is more than a number can be", cell, column.scale),
             where, "fix the cell");
      }
    }
  }
  try {
    for (const std::string& to : column.to) {
      Json& place = record[Json::json_pointer(to)];
      // Several columns may make one text: "PyTorch 2.0.0, 2023-09-28".
      if (column.is_text && place.is_string() && !column.replaces) {
        place = place.get<std::string>() + ", " + cell;
      } else {
        place = value;
      }
    }
  } catch (const Json::exception&) {
    fail("two columns have the same key of the record", where, "fix \"to\" in table.json");
  }
}

std::vector<Record> records_of_table(const std::vector<CsvRow>& rows,
                                     const std::vector<TableColumn>& columns, const Json& shared,
                                     const std::string& study, const std::string& name) {
  std::vector<Record> records;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string where = fmt::format("{}:{}", name, rows[i].line);
    if (rows[i].cells.size() != columns.size()) {
      fail(fmt::format("the row has {} cells, but there are {} columns", rows[i].cells.size(),
                       columns.size()),
           where, "fix the row");
    }
    Json record = make_record(shared, study, static_cast<int>(i));
    for (std::size_t k = 0; k < columns.size(); ++k) {
      put_cell(record, columns[k], rows[i].cells[k], where);
    }
    record["point"] = Record(record, where)->parameters.text();
    records.emplace_back(std::move(record), where);
  }
  return records;
}

}  // namespace paceline
