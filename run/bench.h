// Benchmarks an all-reduce of several backends, in interleaved rounds of fresh processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "engine/comm/allreduce_bench.h"
#include "engine/comm/communicator.h"
#include "engine/core/json.h"
#include "engine/input/loading/input_bench.h"
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
  Provenance provenance;
  std::vector<RankFacts> each_rank;
  bool oversubscribed = false;
};

RunRecord bench_record(const BenchFacts& facts, const std::vector<BenchSize>& sizes,
                       const std::vector<BenchRow>& rows);

// One record of several rounds of a backend, each with the same sizes: medians over rounds. The
// load is that of the busiest.
RunRecord merge_rounds(const std::vector<RunRecord>& rounds);

// Benchmarks the input pipeline on an image set, and reports what was measured.

struct BenchInputOptions {
  std::string data;  // a folder
  std::string split = "train", size = "300x300", augment = "none";
  std::string cache = "decoded", cache_type = "uint8";  // off, raw, decoded; uint8, fp32
  std::string cache_folder;
  bool skip_bad = false;
  std::int64_t samples = 0, batch = 32, input_threads = 0, epochs = 3;
  std::int64_t cache_mb = 0;        // 0: half of the free memory
  std::int64_t parallel_reads = 0;  // 0: one per thread
  std::int64_t read_buffer_kb = 0;  // 0: a whole sample
};

struct BenchedInput {
  InputBenchOptions options;
  InputBench result;
  std::string name, format, split, cache, data_hash, started_at;
  std::optional<double> resident_share;  // of the files in the page cache before
  std::vector<std::string> bad_places;   // the first few
  std::vector<LostRecords> lost;
};

// Throws usage for more threads, reads or memory than there are, and input for a bad data set.
BenchedInput bench_input(const BenchInputOptions& options);

Document to_document(const BenchedInput& benched);
Json to_json(const BenchedInput& benched);

// Benchmarks an all-reduce: what is measured, and one process's share of it.

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
