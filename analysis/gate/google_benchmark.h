// Google Benchmark's JSON (--benchmark_out_format=json): each benchmark a subject, each repetition
// a run, each file a session.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/gate/side.h"

namespace paceline {

// The file itself, or those in a folder, that are such JSON; empty where there are none.
std::vector<std::filesystem::path> google_benchmark_files(const std::filesystem::path& place);

// Aggregates are left out, as they can be computed again, also those of versions before 1.4, which
// only their names tell; so is one that took no time, with a note. Benchmarks that ended in an
// error count as runs that did not end. Throws input naming file and benchmark: aggregates alone,
// no time, a negative one, an unknown unit, another tool's file.
Side read_google_benchmark(const std::string& side, const std::filesystem::path& file);

}  // namespace paceline
