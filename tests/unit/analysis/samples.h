// Stores of sample records in memory.
#pragma once

#include <vector>

#include "results/store.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
inline namespace testing {

inline StoreContent canonical_content(const std::vector<Json>& records) {
  StoreContent content;
  for (std::size_t i = 0; i < records.size(); ++i) {
    content.records.emplace_back(records[i], "record " + std::to_string(i));
  }
  return content;
}

// Of a plan: so many replicas of one CPU each.
inline Point planned_point(std::int64_t gpus) {
  Point point;
  point.set("gpus", gpus);
  point.set("cpus_per_task", std::int64_t{1});
  point.set("backend", std::string("mpi"));
  return point;
}

// Rounds of a study of one and two replicas with shared drift: the ratio is 1.8 in each round, but
// for a spread of one percent.
inline std::vector<Json> drifting_study() {
  std::vector<Json> records;
  const double drift[] = {1.0, 1.3, 0.8}, noise[] = {1.0, 1.01, 0.99};
  for (int round = 1; round <= 3; ++round) {
    const double base = 18 * drift[round - 1];
    records.push_back(sample_record({.repeat = round, .fit_seconds = base}));
    records.push_back(
        sample_record({.gpus = 2, .repeat = round, .fit_seconds = base / 1.8 * noise[round - 1]}));
  }
  return records;
}

}  // namespace testing
}  // namespace paceline
