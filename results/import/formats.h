// The formats, a file each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"
#include "results/run_record.h"

namespace paceline {

// What a format of another tool's output gives, and the list of formats.
//
// A format is a file in this folder and an entry of import.cpp. It turns the text of a file into
// run records that hold what the file says and nothing else. import.h adds what all have: kind,
// provenance, --set, names in the store.

struct ForeignFile {
  std::string name;  // as the user gave it; for messages
  std::string text;
  std::vector<std::string> columns, set;  // --column KEY=HEADING, --set KEY=VALUE; for csv
};

struct ImportedRun {
  RunRecord record;
  std::size_t line = 1;  // of the file, where it begins
};

struct ImportContent {
  std::string tool;  // "nccl-tests 2.16.0"
  std::vector<ImportedRun> runs;
  std::vector<std::string> notes;  // what was left out, one sentence each
};

struct ImportFormat {
  const char* name;
  const char* what;  // "output of NVIDIA's nccl-tests"
  bool (*is_one)(std::string_view text);
  // Throws input naming file and line. Never returns an empty list of runs.
  ImportContent (*read)(const ForeignFile& file);
};

const std::vector<ImportFormat>& import_formats();

// Throws usage with the nearest name.
const ImportFormat& import_format_named(const std::string& name);

// Throws input if the text is not of `format`, naming the format that it looks like.
void check_format(const ImportFormat& format, const ForeignFile& file);

bool is_nccl_tests(std::string_view text);
ImportContent read_nccl_tests(const ForeignFile& file);
bool is_osu(std::string_view text);
ImportContent read_osu(const ForeignFile& file);
bool is_jobstats(std::string_view text);
ImportContent read_jobstats(const ForeignFile& file);
bool is_horovod_timeline(std::string_view text);
ImportContent read_horovod_timeline(const ForeignFile& file);
bool is_google_benchmark(std::string_view text);
ImportContent read_google_benchmark_file(const ForeignFile& file);
bool is_mlperf(std::string_view text);
ImportContent read_mlperf(const ForeignFile& file);
bool is_csv_table(std::string_view text);
ImportContent read_csv_table(const ForeignFile& file);

// Google Benchmark's JSON (--benchmark_out_format=json), row by row. Read by the gate, too.

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
