// Benchmarks the input pipeline on an image set, and reports what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "engine/core/json.h"
#include "engine/input/loading/input_bench.h"

namespace paceline {

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

}  // namespace paceline
