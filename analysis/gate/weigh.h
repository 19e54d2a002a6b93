// One quantity of one point on both sides: their difference, how well it is known, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "analysis/gate/judge.h"

namespace paceline {

using Samples = std::vector<Sample>;

struct Weighed {
  Check check;
  Difference difference;
  double units = 0;  // rounds, sessions or runs of a side, where both had equally many
  std::string unevenly_busy = {};  // that the machine was busy on one side only: it decides nothing
};

Weighed weigh_samples(const std::string& subject, const QuantityInfo& info, const Samples& baseline,
                      const Samples& current, double threshold);

// What the check says of its difference.
void fill_in(Weighed& weighed);

// The verdict, once p is adjusted for all checks.
void decide(Weighed& weighed);

}  // namespace paceline
