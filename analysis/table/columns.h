// Which columns of a table are shown: --columns.
#pragma once

#include <string>
#include <vector>

#include "analysis/table/table.h"

namespace paceline {

// A choice is a list of keys ("gpu_hours") and groups ("cost"). With "+" in front they are added to
// the columns that are shown without a choice, with "-" they are left out; others replace those
// columns. Layout, axes and the number of runs always stay. Every format has the chosen columns
// only. Throws usage, suggesting a name, if the table has no such column.
void choose_columns(Table& table, const std::vector<std::string>& choice);

}  // namespace paceline
