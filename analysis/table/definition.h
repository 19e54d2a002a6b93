// How a table's columns and cells are made.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/table/table.h"

namespace paceline {

struct Definition {
  Column column;
  std::function<Cell(const RowFacts&)> cell;
  bool essential = false;
  // What the cell is made of: one that not all runs of its row know says how many do.
  RunFact of = {};
};

Column text_column(const char* key, const char* heading);
Column whole_column(const char* key, const char* heading);
Column real_column(const char* key, const char* heading);
Column interval_column(const char* key, const char* heading);
Column of_layout(Column column);
Column detail(int rank, Column column);
Column narrow(Column column);
Column in(const char* group, Column column);
Column extra(const char* group, Column column, std::string note);

// Four significant digits, but no decimals that were never measured.
int count_digits(double value, bool exact);
Cell number(std::optional<double> value, int digits);
Cell whole(std::optional<int> value);
Cell percent(std::optional<double> share, int digits = 1);
// In percent for people, as a share for programs.
Cell percent_estimate(const std::optional<Estimate>& share, int digits);

// "0.701 (1 run)", where fewer runs than the row has know `of`.
void mark_fewer_runs(Cell& cell, const Row& row, const RunFact& of);

// The groups that --columns adds.
void add_cost(std::vector<Definition>& all);
void add_energy(std::vector<Definition>& all, const Study& study);

// Which columns of a table are shown: --columns.

// A choice is a list of keys ("gpu_hours") and groups ("cost"). With "+" in front they are added to
// the columns that are shown without a choice, with "-" they are left out; others replace those
// columns. Layout, axes and the number of runs always stay. Every format has the chosen columns
// only. Throws usage, suggesting a name, if the table has no such column.
void choose_columns(Table& table, const std::vector<std::string>& choice);

}  // namespace paceline
