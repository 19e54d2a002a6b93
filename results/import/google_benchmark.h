// Google Benchmark's JSON (--benchmark_out_format=json), row by row. Read by the gate, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"

namespace paceline {

struct BenchmarkRow {
  enum class Outcome { timed, failed, skipped, took_no_time };
  Outcome outcome = Outcome::timed;
  std::string name;    // of the benchmark, the same for all repetitions
  double seconds = 0;  // real time of an iteration
  std::optional<double> items_per_second;
  std::string error;  // why it failed
  std::string where;  // "file.json:12"
};

struct BenchmarkFile {
  std::string date, executable, host, machine, build_type;  // "" where not stated
  std::optional<int> cpus;
  std::vector<BenchmarkRow> rows;
  std::size_t aggregates = 0;  // left out, as they can be computed from the rows
};

bool is_benchmark_json(const Json& json);

// Recognises aggregates of versions before 1.4 by their names. Throws input naming file and
// benchmark: no list, only aggregates, no time, a negative time, an unknown unit, another tool's
// file.
BenchmarkFile read_benchmark_file(const JsonDocument& document);

}  // namespace paceline
