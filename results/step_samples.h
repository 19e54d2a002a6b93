// Samples of each step and rank, stored next to a measured record (N.M.steps.gz), after the facts
// of each rank if those are too large for the record (run_record.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"

namespace paceline {

struct RunRecord;
struct StepQuantiles;
struct StepTimes;  // engine/facts/step_times.h

struct RankSeconds {
  double input = 0, compute = 0, communication = 0, other = 0;
};

struct StepSums {
  std::vector<RankSeconds> ranks;
  // Time in which every rank waited for communication: the smallest wait of any rank, summed over
  // steps.
  double waited_by_all = 0;
};

// A step of a rank.
struct StepSeconds {
  double input = 0, forward = 0, backward = 0, communication = 0, update = 0, other = 0;
};

// The steps of each rank, after the first `warmup` ones. Empty in the same cases as summed_steps(),
// and if there are more than `most` of all ranks.
std::vector<std::vector<StepSeconds>> all_steps(const RunRecord& record, const std::string& where,
                                                std::size_t warmup, std::size_t most = 1'000'000);

// Sums over the steps after the first `warmup`. Empty if there are no samples, or they do not match
// the record, are cut short, or lack some rank or step.
std::optional<StepSums> summed_steps(const RunRecord& record, const std::string& where,
                                     std::size_t warmup = 0);

// Appends a line for each step of a rank: {"rank":0,"step":0,"total":..,"input":.., ..}.
void add_step_lines(int rank, const std::vector<StepTimes>& steps, std::string& lines);

// A part of such a file, which is as many parts as it was written in.
std::string gzip(std::string_view lines);

// Bounds the size of records of long runs with many ranks.

// Removes entries from the longest lists until the record, measured with `size_of`, has at most
// `limit` bytes, or nothing more can be removed. Replaces lists over ranks by "ranks"
// (run_record.h), and returns them as lines for the sidecar. From other lists it removes every
// second entry, repeatedly, and always keeps the last one. `thinned` in the record has the original
// length of each list, and rows of quality.epochs then have their number as `epoch`. Always thins
// more than 96 epochs.
std::string thin(Json& record, std::size_t limit, std::size_t (*size_of)(const Json&));

// Quantiles of a run's samples.

// Linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996, the default of R
// and NumPy). `sorted` is not empty, `share` is 0 to 1.
double quantile(const std::vector<double>& sorted, double share);

double median(std::vector<double> values);  // at least one value

// For the steps of one rank, at least one.
StepQuantiles step_quantiles(std::vector<double> seconds);
StepQuantiles step_quantiles(std::span<const StepTimes> steps);

}  // namespace paceline
