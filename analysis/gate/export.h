// A study for other people's tools.
#pragma once

#include <string>
#include <string_view>

#include "analysis/gate/side.h"

namespace paceline {

// Google Benchmark's JSON, a repetition a run: its compare.py, and dashboards that read it. What a
// run took stands in real_time and in cpu_time, which such tools ask for. Read again by
// google_benchmark.h it gives the same times.
std::string google_benchmark_json(const Side& side);

// github-action-benchmark's customSmallerIsBetter: mean seconds of each point with the half-width
// of its 95 % interval as range.
std::string github_action_json(const Side& side);

// Whether it is a text that one of the two made.
bool is_export(std::string_view text);

}  // namespace paceline
