// One quantity of one point on both sides: the difference, its uncertainty and the verdict.
#pragma once

#include <string>
#include <vector>

#include "analysis/gate/judge.h"

namespace paceline {

using Samples = std::vector<Sample>;

struct Weighed {
  Check check;
  Difference difference;
  double units = 0;  // rounds, sessions or runs per side, if both have equally many
  // Only one side ran on a busy machine, so the check decides nothing.
  std::string unevenly_busy = {};
};

// `stopping` is that of rounds and runs, not of sessions.
Weighed weigh_samples(const std::string& subject, const QuantityInfo& info, const Samples& baseline,
                      const Samples& current, double threshold,
                      Stopping stopping = Stopping::fixed);

// Fills in the check's difference.
void fill_in(Weighed& weighed);

// Sets the verdict, after p was adjusted for all checks.
void decide(Weighed& weighed);

}  // namespace paceline
