// Benchmarks an all-reduce: what is measured, and one process's share of it.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "run/bench_backends.h"

namespace paceline {

// Texts are as typed; empty: not given.
struct CollectiveBenchOptions {
  std::string backends = {};  // separated by commas; empty: all that serve here
  std::string cpus_per_task = {}, gpus = {}, nodes = {};
  std::string least = "4", most = "64M", sizes = {};  // bytes: "4096", "64K", "4K,1M"
  std::string like = {};                              // a workload, whose buckets are summed
  std::string dtype = "f32";
  std::string record = {};  // a new file; of several backends, a folder
  double bucket_mb = 8, last_bucket_mb = 1, seconds = 0.25;
  std::int64_t step_factor = 4, iterations = 0, warmup = 3, rounds = 5;
  bool no_baselines = false, oversubscribe = false, quiet = false;
  Deadlines deadlines = {};
};

// Throws usage naming the option.
std::vector<BenchSize> list_sizes(const CollectiveBenchOptions& options);
DType parse_dtype(const std::string& name);

struct CollectiveBench {
  std::vector<RunRecord> records;  // one a backend; empty: other processes have them, or a failure
  bool is_comparison = false;      // of several backends
  int exit_code = 0;               // 1: a sum was wrong
};

// Measures one backend in the ranks of this call, or several in processes of their own, and writes
// `record`. `command` is the call. Throws usage for options that contradict each other, a backend
// that does not sum, and more than the free memory.
CollectiveBench bench_collective(const CollectiveBenchOptions& options,
                                 const std::vector<std::string>& command);

}  // namespace paceline
