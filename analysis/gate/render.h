// Renders a verdict for people and for programs. All formats have the same content.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/gate/judge.h"
#include "analysis/gate/side.h"
#include "analysis/study/study.h"

namespace paceline {

// Names of the two sides ("baseline" and "current", or "old" and "new"), and their paths.
struct GateSides {
  std::string baseline = "baseline", current = "current";
  std::string baseline_place, current_place;
};

// The verdict, all checks of time, other checks that did not pass, then the notes. JSON: {"schema":
// 1, "verdict", "confirmed", "sequential", "rounds" (null unless it went on until it was decided),
// "baseline", "current", "warnings", "sees", "notes", "checks": [{"subject", "quantity",
// "baseline", "current", "change", "change_low", "change_high", "verdict", "evidence", "reason",
// "threshold", "p", "p_adjusted", "baseline_runs", "current_runs", "worse_below_threshold",
// "busy_left_aside", "outlying_left_aside", "change_with_outlying" (null where no run stands out),
// "fresh", "first_change"}]}. Changes: positive is worse; shares of the baseline for time and loss.
Document gate_document(const Judgement& judgement, const GateSides& sides);
// Whether it is such a document as Markdown.
bool is_gate_markdown(std::string_view text);

// One test case per check, grouped by quantity. A regression is a failure, and an undecided check
// is skipped with its reason as message: nothing broke. The seconds of a check of time are those of
// a run of the current side.
std::string gate_junit(const Judgement& judgement, const GateSides& sides);
bool is_gate_junit(std::string_view text);

// Workflow commands of GitHub Actions, one per line: ::error for a regression, ::warning for an
// undecided check, ::notice for a pass.
std::string gate_annotations(const Judgement& judgement);

// For a build compared with itself: whether this machine is steady enough to detect changes of time
// at the thresholds, in one sentence. Empty if no check of time has an interval.
std::string steadiness_text(const Judgement& judgement);

// Exports a study for other tools.

// github-action-benchmark's customSmallerIsBetter: mean seconds of each point, or of a sample where
// runs state only their rate. The range is the half-width of its 95 % interval.
std::string github_action_json(const Side& side);

// OpenMetrics text, for GitLab's metrics reports and Prometheus: gauges
// paceline_seconds{study="...",name="...",workload="...",gpus="2",backend="ring"} with the mean of
// each point, paceline_seconds_low and _high with its 95 % interval, and paceline_runs. Points
// whose runs state only their rate are paceline_seconds_per_sample instead. Of rows of `studies`
// that have a base also paceline_speed_up and paceline_efficiency.
std::string open_metrics(const Side& side, const std::vector<Study>& studies = {});

// Whether one of the functions above made this text.
bool is_export(std::string_view text);

// Reads Google Benchmark's JSON (--benchmark_out_format=json): a benchmark is a subject, a
// repetition a run, a file a session.

// The file itself, or the files of a folder, that contain such JSON. May be empty.
std::vector<std::filesystem::path> google_benchmark_files(const std::filesystem::path& place);

// Skips aggregates, which can be recomputed (also those of versions before 1.4, recognised by
// name), and, with a note, benchmarks that took no time. Benchmarks that ended in an error count as
// failed runs. Throws input naming file and benchmark: only aggregates, no time, a negative time,
// an unknown unit, another tool's file.
Side read_google_benchmark(const std::string& side, const std::filesystem::path& file);

}  // namespace paceline
