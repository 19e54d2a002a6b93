// Exports a study for other tools.
#pragma once

#include <string>
#include <string_view>

#include "analysis/gate/side.h"

namespace paceline {

// Google Benchmark's JSON, with one repetition per run, for its compare.py and for dashboards. A
// run's time is in both real_time and cpu_time, because tools read either. google_benchmark.h reads
// the same times back.
std::string google_benchmark_json(const Side& side);

// github-action-benchmark's customSmallerIsBetter: mean seconds of each point, or of a sample where
// runs state only their rate. The range is the half-width of its 95 % interval.
std::string github_action_json(const Side& side);

// OpenMetrics text, for GitLab's metrics reports and Prometheus: gauges
// paceline_seconds{study="...",name="..."} with the mean of each point, paceline_seconds_low and
// _high with its 95 % interval, and paceline_runs. Points whose runs state only their rate are
// paceline_seconds_per_sample instead.
std::string open_metrics(const Side& side);

// Whether one of the functions above made this text.
bool is_export(std::string_view text);

}  // namespace paceline
