// Energy of a run, by the meters of its nodes and GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/bounds.h"

namespace paceline {

// All counters of one kind, over all nodes.
struct MeterFacts {
  std::string meter, covers;    // "RAPL", "CPUs"
  std::optional<bool> sampled;  // integrated from samples of a power; else a counter of joules
  std::optional<std::int64_t> counters;
  // Of training; the joules of evaluation and checkpoints are apart. Joules are empty where they
  // tell nothing, see trouble.
  std::optional<double> seconds, joules, evaluation_joules, checkpoint_joules;
  std::optional<double> idle_watts;  // before the first step
  std::string trouble;

  template <typename Each>
  void fields(Each& each) {
    each("meter", meter);
    each("covers", covers);
    each("sampled", sampled);
    each("counters", counters);
    each("seconds", seconds);
    each("joules", joules, kPositive);
    each("evaluation_joules", evaluation_joules);
    each("checkpoint_joules", checkpoint_joules);
    each("idle_watts", idle_watts);
    each("trouble", trouble);
  }
};

// The sum of the meters that cover most without counting anything twice.
struct EnergyFacts {
  std::string covers;          // "GPUs + CPUs + memory", "node"
  std::optional<bool> shared;  // other jobs were on a node whose meter counts them, too
  std::optional<double> seconds, joules, evaluation_joules, checkpoint_joules, idle_watts;
  std::string trouble;  // why there are no joules
  std::vector<MeterFacts> meters;

  template <typename Each>
  void fields(Each& each) {
    each("covers", covers);
    each("shared", shared);
    each("seconds", seconds);
    each("joules", joules, kPositive);
    each("evaluation_joules", evaluation_joules);
    each("checkpoint_joules", checkpoint_joules);
    each("idle_watts", idle_watts);
    each("trouble", trouble);
    each("meters", meters);
  }
};

}  // namespace paceline
