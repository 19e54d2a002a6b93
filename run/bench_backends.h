// Benchmarks an all-reduce of several backends, in interleaved rounds of fresh processes.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/allreduce_bench.h"
#include "results/run_record.h"

namespace paceline {

struct BackendsBench {
  std::vector<std::string> backends;
  bool may_skip = false;  // leaves out a backend that does not serve, with a note
  // `paceline bench allreduce` as it was called. Options that are appended replace earlier ones.
  std::vector<std::string> command;
  int rounds = 5;
  double seconds = 0.25;  // for each size, over all rounds
};

struct BackendsOutcome {
  std::vector<RunRecord> records;  // one a backend, in the given order
  int stopped_by = 0;              // the signal that interrupted it, before all rounds: no records
};

// Each round calls the command once for each backend, the first one in turn. Throws the error of a
// call that fails, or of all if none serves.
BackendsOutcome bench_backends(const BackendsBench& bench);

// The backends that sum between replicas on CPUs and are built.
std::vector<std::string> backends_to_compare();

// Makes a record of kind collective from all-reduce measurements.

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
  LoadFacts machine_load;
};

RunRecord bench_record(const BenchFacts& facts, const std::vector<BenchSize>& sizes,
                       const std::vector<BenchRow>& rows);

// One record of several rounds of a backend, each with the same sizes: medians over rounds. The
// load is that of the busiest.
RunRecord merge_rounds(const std::vector<RunRecord>& rounds);

}  // namespace paceline
