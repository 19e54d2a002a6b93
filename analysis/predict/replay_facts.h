// What a replay takes from the records of measured runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/evidence/run.h"
#include "analysis/predict/network.h"
#include "results/step_samples.h"

namespace paceline {

// The steps of a run after its warm-up.
struct RunSteps {
  // The steps of each rank. Without samples, its mean phases, spread like its steps' quantiles.
  std::vector<std::vector<StepSeconds>> ranks;
  bool sampled = true;
  double step_seconds = 0;  // measured: the global batch over the rate
};

// Empty: the record has no phases, steps or rate.
std::optional<RunSteps> find_steps(const Run& run);

// A bucket as its trainer or a cap made it.
struct BucketFacts {
  double bytes = 0;
  double ready = 1;  // share of backward that has passed when its gradients are final
};

enum class ReadyTimes { measured, by_operations, by_buckets };  // the last two are guesses

struct BucketPlan {
  std::vector<BucketFacts> buckets;  // empty: not known
  ReadyTimes ready = ReadyTimes::measured;
};

// With buckets of at most `cap_mb` MiB instead of its own; then empty if the record lacks the sizes
// of gradients. A lone replica's bucket is cut as that of several would be.
BucketPlan plan_buckets(const RunRecord& record, std::optional<double> cap_mb = {});

// Bytes on the wire of a byte of gradients: 0.5 for "gloo+bf16", whose gradients are fp32.
double wire_factor(const RunRecord& record);
// The same, if they were sent as `precision`. Throws usage for one that no backend sends.
double wire_factor(const RunRecord& record, const std::string& precision);

// All-reduces that a record of kind collective, or an imported one, measured, as bytes on the wire.
std::vector<SumSample> sums_in(const Run& run);
// Those of a training run: the least time that a rank spent in them, which has the fewest waits.
std::optional<SumSample> sums_of_steps(const Run& run);

// What a prediction changes against the measured runs.

struct WhatIf {
  std::string wire;                 // precision on the wire: bf16, fp16, fp32; empty: as it was
  std::optional<double> bucket_mb;  // the cap of buckets, MiB
  double links = 1;                 // links that are so many times as fast
};

// Parses "precision-on-the-wire=bf16,bucket_mb=32,links=2x". Throws usage.
WhatIf parse_what_if(const std::string& text);

// What measured steps took longer than their replay.

// A measured size of several replicas. All are seconds of a step.
struct ComparedSize {
  double measured = 0, replayed = 0;
  double sums = 0;  // of all its all-reduces, as replayed
};

// Seconds that a replay lacks: of each step alike, or a share of its all-reduces. One of them is 0.
struct ReplayResidual {
  double fixed = 0, share_of_sums = 0;

  double seconds(double sums) const { return fixed + share_of_sums * sums; }
  // A replayed step plus its residual. A negative residual leaves at least a tenth of the step.
  double with_rest(double replayed, double sums) const;
};

// Ranks that disturb each other in computing leave a fixed residual. Links that were faster or
// slower in a benchmark than in steps leave a share. Of the two, the one that fits the sizes better
// by least squares; fixed where one size cannot tell.
ReplayResidual fit_residual(const std::vector<ComparedSize>& sizes);

}  // namespace paceline
