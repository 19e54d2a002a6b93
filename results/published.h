// Published tables: folders with two small files, read as records of kind published.
#pragma once

#include <filesystem>
#include <vector>

#include "results/record.h"

namespace paceline {

constexpr char kPublishedDescription[] = "table.json";
constexpr char kPublishedRows[] = "table.csv";

bool is_published(const std::filesystem::path& folder);

// One record for each row of table.csv, as described in table.json (reference/README.md): `record`
// has the values common to all rows, `columns` map columns to record keys. Throws input naming file
// and line: a column without description, a cell that is not a number, a row of the wrong length,
// an invalid record.
std::vector<Record> read_published(const std::filesystem::path& folder);

}  // namespace paceline
