// A published table: a folder with two small files, read as records of kind published.
#pragma once

#include <filesystem>
#include <vector>

#include "results/record.h"

namespace paceline {

constexpr char kPublishedDescription[] = "table.json";
constexpr char kPublishedRows[] = "table.csv";

bool is_published(const std::filesystem::path& folder);

// One record a row of table.csv, made as table.json says (reference/README.md): `record` is what
// every row holds, `columns` say where in the record a column's number or text goes. Throws input
// naming file and line: a column that is not described, a cell that is not a number, a row too
// short or too long, a record that does not pass its checks.
std::vector<Record> read_published(const std::filesystem::path& folder);

}  // namespace paceline
