// What each rank measures, named at this one place.
#pragma once

#include "engine/facts/timing.h"

namespace paceline {

// To add a fact, add its line and fill it in where it is measured. gather() brings those of all
// ranks together, and a record has a list of each fact, of many ranks its spread. Numbers are
// reals, as means over ranks are not whole.
struct RankFacts {
  PACELINE_FACT(fact::Text, host, "", FactRule{.list = "/provenance/hosts"});
  PACELINE_FACT(fact::Text, affinity, "its CPUs: \"0-3\"",
                FactRule{.list = "/provenance/affinity"});
  PACELINE_FACT(std::optional<StepQuantiles>, step_seconds, "",
                FactRule{.list = "/timing/step_seconds"});
  PACELINE_FACT(std::optional<PhaseSeconds>, phases, "seconds of the whole fit",
                FactRule{.list = "/phases"});
  PACELINE_FACT(fact::Real, ready_batches, "mean number of batches that waited for the rank",
                FactRule{.list = "/input/ready_batches"});
  PACELINE_END_FACTS
};

// Statistics over ranks, of each number by itself. In a record a fact comes first, then the
// statistic: {"ready_batches": {"mean": ..}}.
struct RankSpread {
  RankFacts mean, min, p05, p50, p95, max;
};

struct RankOutlier {
  PACELINE_FACT(RankFacts, facts, "", kInlined);
  PACELINE_FACT(int, rank, "", kRequired);
  PACELINE_END_FACTS
};

// Many ranks in a record of bounded size. Replaces the lists over ranks, which are then in the
// sidecar.
struct RanksFacts {
  PACELINE_FACT(int, count, "number of ranks", kRequiredCount);
  PACELINE_FACT(fact::Count, hosts, "number of hosts");
  PACELINE_FACT(RankSpread, spread, "", kInlined);
  PACELINE_FACT(std::vector<RankOutlier>, outliers,
                "the four ranks each with the longest steps, that computed longest, that waited "
                "longest for input, and that waited least for others");
  PACELINE_END_FACTS
};

}  // namespace paceline
