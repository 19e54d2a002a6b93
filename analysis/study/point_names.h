// Short names of a study's rows that distinguish them: "mpi, 2 replicas, 1 CPU each".
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

// One name per row, made of what differs between them: kind, system, backend, axes, replicas, CPUs.
// Always includes the replicas, and, for a single row, its backend.
std::vector<std::string> point_names(const Study& study, const std::vector<const Row*>& rows);

// "1 GPU", "2 replicas".
std::string counted_replicas(const Study& study, int gpus);

}  // namespace paceline
