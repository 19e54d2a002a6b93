// What importers give, and the list of them. An importer is a file in formats/, whose NAME_format()
// CMakeLists.txt puts into the list. It turns the text of another tool's file into run records that
// hold what the file says and nothing else. import.h adds what all have: kind, provenance, --set,
// names in the store.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"
#include "engine/facts/rank.h"
#include "results/run_record.h"

namespace paceline {

struct ForeignFile {
  std::string name;  // as the user gave it; for messages
  std::string text;
  std::vector<std::string> columns, set;  // --column KEY=HEADING, --set KEY=VALUE; for csv
};

struct ImportedRun {
  RunRecord record;
  std::size_t line = 1;      // of the file, where it begins
  std::string samples = {};  // gzipped steps, for the record's sidecar
};

struct ImportContent {
  std::string tool;  // "nccl-tests 2.16.0"
  std::vector<ImportedRun> runs;
  std::vector<std::string> notes;  // what was left out, one sentence each
};

struct ImportFormat {
  const char* name;     // "nccl-tests"
  const char* what;     // "output of nccl-tests or rccl-tests"
  const char* example;  // for help, after its name: "all_reduce.txt --study links"
  bool (*is_one)(std::string_view text);
  // Throws input naming file and line. Never returns an empty list of runs.
  ImportContent (*read)(const ForeignFile& file);
  bool is_table =
      false;  // of columns that the user chooses: files of other formats may look like it
  // Instead of `read`: all files are of one run, and of any size. `set` is --set.
  ImportContent (*read_together)(const std::vector<std::string>& files,
                                 const std::vector<std::string>& set) = nullptr;
};

std::vector<ImportFormat> registered_formats();

// The same in the order in which a file is tried: tables come last.
const std::vector<ImportFormat>& import_formats();

// Throws usage with the nearest name.
const ImportFormat& import_format_named(const std::string& name);

// Throws input if the text is not of `format`, naming the format that it looks like.
void check_format(const ImportFormat& format, const ForeignFile& file);

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
  std::string date, host, build_type;  // "" where not stated
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
