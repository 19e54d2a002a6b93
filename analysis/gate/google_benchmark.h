// Reads Google Benchmark's JSON (--benchmark_out_format=json): a benchmark is a subject, a
// repetition a run, a file a session.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/gate/side.h"

namespace paceline {

// The file itself, or the files of a folder, that contain such JSON. May be empty.
std::vector<std::filesystem::path> google_benchmark_files(const std::filesystem::path& place);

// Skips aggregates, which can be recomputed (also those of versions before 1.4, recognised by
// name), and, with a note, benchmarks that took no time. Benchmarks that ended in an error count as
// failed runs. Throws input naming file and benchmark: only aggregates, no time, a negative time,
// an unknown unit, another tool's file.
Side read_google_benchmark(const std::string& side, const std::filesystem::path& file);

}  // namespace paceline
