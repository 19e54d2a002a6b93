// Stores of sample records in memory.
#pragma once

#include <vector>

#include "results/store.h"
#include "tests/unit/results/sample_record.h"

namespace paceline::testing {

inline StoreContent canonical_content(const std::vector<Json>& records) {
  StoreContent content;
  for (std::size_t i = 0; i < records.size(); ++i) {
    content.records.emplace_back(records[i], "record " + std::to_string(i));
  }
  return content;
}

// Rounds of a study of one and two replicas with shared drift: the ratio is 1.8 in each round, but
// for a spread of one percent.
inline std::vector<Json> drifting_study() {
  std::vector<Json> records;
  const double drift[] = {1.0, 1.3, 0.8}, noise[] = {1.0, 1.01, 0.99};
  for (int round = 1; round <= 3; ++round) {
    const double base = 18 * drift[round - 1];
    records.push_back(sample_record({.repeat = round, .round = round, .fit_seconds = base}));
    records.push_back(sample_record({.gpus = 2,
                                     .repeat = round,
                                     .round = round,
                                     .fit_seconds = base / 1.8 * noise[round - 1]}));
  }
  return records;
}

}  // namespace paceline::testing
