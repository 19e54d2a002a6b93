// Makes a record of kind collective from all-reduce measurements.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/allreduce_bench.h"
#include "results/run_record.h"

namespace paceline {

struct BenchSize {
  std::size_t count = 0;  // elements
  std::string label;      // "bucket 3", or empty
};

struct BenchFacts {
  Point parameters;
  Layout layout;
  DType type = DType::f32;
  std::size_t rounds = 0;
  std::string backend_used, cpu_model, started_at;
  std::vector<std::string> hosts, affinity, command;
  bool oversubscribed = false;
};

RunRecord bench_record(const BenchFacts& facts, const std::vector<BenchSize>& sizes,
                       const std::vector<BenchRow>& rows);

// One record of several rounds of a backend, each with the same sizes: medians over rounds.
RunRecord merge_rounds(const std::vector<RunRecord>& rounds);

}  // namespace paceline
