// Whether communication waits for a CPU: what a sweep over CPUs per task and backends can show.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

// One sentence for each backend and number of replicas whose exposed communication per step is, at
// 95 %, more than twice as long with the fewest CPUs a replica as with more, and at least a tenth
// of a step there. Only rows of three runs or more, on as many nodes, that differ in nothing else.
std::vector<std::string> cpu_for_communication(const Study& study);

}  // namespace paceline
