// What to call the rows of a study among each other: "mpi, 2 replicas, 1 CPU each".
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

// A name a row, of what differs between them: kind, system, backend, axes, replicas, CPUs. The
// replicas are always told, and of a single row its backend.
std::vector<std::string> point_names(const Study& study, const std::vector<const Row*>& rows);

// "1 row", "2 rows".
std::string counted(std::size_t number, const char* noun);

// "1 GPU", "2 replicas".
std::string counted_replicas(const Study& study, int gpus);

}  // namespace paceline
