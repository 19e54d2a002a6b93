// Whether programs of the user's own (workload command) that share a table did the same work.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

// Compares what the programs report (parameters, precision, global batch, samples) point by point,
// and says it in Row::work of each row that differs from another program's.
void compare_work(std::vector<Row>& rows);

// What differs, and what could not be compared because a program does not report it. May be empty.
std::vector<std::string> work_notes(const std::vector<Row>& rows);

}  // namespace paceline
