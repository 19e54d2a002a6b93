// Prints the results of `paceline bench input`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "engine/input/loading/input_bench.h"

namespace paceline {

struct BenchedSet {
  std::string name, format, split, cache, data_hash, started_at;
  std::optional<double> resident_share;
  std::vector<std::string> bad_places;
  std::vector<LostRecords> lost;
};

std::string input_table(const BenchedSet& set, const InputBenchOptions& options,
                        const InputBench& bench);
Json input_bench_json(const BenchedSet& set, const InputBenchOptions& options,
                      const InputBench& bench);

}  // namespace paceline
