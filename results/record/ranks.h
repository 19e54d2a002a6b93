// Many ranks in a record of bounded size: the spread of their facts, and the outliers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/timing.h"

namespace paceline {

// Statistics over ranks, separately for each key.
template <typename Facts>
struct Spread {
  Facts mean = {}, min = {}, p05 = {}, p50 = {}, p95 = {}, max = {};

  template <typename Each>
  void fields(Each& each) {
    each("mean", mean);
    each("min", min);
    each("p05", p05);
    each("p50", p50);
    each("p95", p95);
    each("max", max);
  }
};

struct RankFacts {
  int rank = 0;
  std::string host, affinity;
  std::optional<StepQuantiles> step_seconds;
  std::optional<PhaseSeconds> phases;
  std::optional<double> ready_batches;

  template <typename Each>
  void fields(Each& each) {
    each("rank", rank, kRequired);
    each("host", host);
    each("affinity", affinity);
    each("step_seconds", step_seconds);
    each("phases", phases);
    each("ready_batches", ready_batches);
  }
};

// Replaces the lists over ranks, which are then in the sidecar.
struct RanksFacts {
  int count = 0;
  std::optional<std::int64_t> hosts;  // number of hosts
  std::optional<Spread<StepQuantiles>> step_seconds;
  std::optional<Spread<PhaseSeconds>> phases;
  std::optional<Spread<double>> ready_batches;
  std::vector<RankFacts> outliers;

  template <typename Each>
  void fields(Each& each) {
    each("count", count, kRequiredCount);
    each("hosts", hosts);
    each("step_seconds", step_seconds);
    each("phases", phases);
    each("ready_batches", ready_batches);
    each("outliers", outliers);
  }
};

}  // namespace paceline
