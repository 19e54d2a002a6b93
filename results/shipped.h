// Finds files that are shipped with the program: sweep specs and site profiles.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/csv.h"
#include "results/store.h"

namespace paceline {

// `given` if that file exists, else the shipped file of that name: "quick", "quick.json" and
// "sweeps/quick.json" are equivalent. `folder` is "sweeps" or "slurm/sites", in share/paceline of
// an installation or in the source tree. Throws input suggesting the nearest shipped file.
std::filesystem::path find_shipped(const std::filesystem::path& given, const std::string& folder);

// The names of the shipped files of such a folder.
std::vector<std::string> shipped_names(const std::string& folder);

// The path of a shipped file or folder such as "results/reference" or "sweeps/quick.json". Empty if
// it does not exist.
std::filesystem::path shipped_path(const std::filesystem::path& relative);

// Published tables: folders with two small files, read as records of kind published.

constexpr char kPublishedDescription[] = "table.json";
constexpr char kPublishedRows[] = "table.csv";

bool is_published(const std::filesystem::path& folder);

// Where a column's cells go: JSON pointers into the record; none: they are not read.
struct TableColumn {
  std::vector<std::string> to;
  bool is_text = false;
  double scale = 1;       // of numbers, into the record's unit
  bool is_time = false;   // in seconds
  bool replaces = false;  // a text replaces what is there, else it is added after a comma
};

// Throws input with `where` if the cell is not what the column holds.
void put_cell(Json& record, const TableColumn& column, const std::string& cell,
              const std::string& where);

// One record for each of `rows` but the heading, which has as many cells as there are columns. Each
// begins as `shared`. Throws input naming `name` and the line.
std::vector<Record> records_of_table(const std::vector<CsvRow>& rows,
                                     const std::vector<TableColumn>& columns, const Json& shared,
                                     const std::string& study, const std::string& name);

// One record for each row of table.csv, as described in table.json (reference/README.md): `record`
// has the values common to all rows, `columns` map columns to record keys. Throws input naming file
// and line: a column without description, a cell that is not a number, a row of the wrong length,
// an invalid record.
std::vector<Record> read_published(const std::filesystem::path& folder);

}  // namespace paceline
