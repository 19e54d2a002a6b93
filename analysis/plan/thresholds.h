// Thresholds from a gate's own noise: what a build that was compared with itself says about each
// quantity.
#pragma once

#include <string>
#include <vector>

#include "analysis/gate/judge.h"

namespace paceline {

struct Proposal {
  Quantity quantity = Quantity::time;
  std::size_t points = 0;
  // Standard deviation of a paired difference of the noisiest point, as high as its rounds leave
  // open (upper_sd()). 0: equal runs gave equal values.
  double noise = 0;
  // The smallest with which a gate of so many rounds finds twice as much in 95 % of cases, rounded
  // up to 2 digits. Empty: none up to 100 %, or there is no noise.
  std::optional<double> threshold;
};

// In the order of quantities(). Without checks that paired no rounds.
std::vector<Proposal> propose_thresholds(const Judgement& of_itself, int rounds);

// A table, and the options to paste. Empty if there is no proposal.
std::string proposals_text(const std::vector<Proposal>& proposals, const Thresholds& now,
                           int rounds, std::size_t width);

// How a gate came to its verdict.
struct GateKind {
  bool has_fresh_runs = false;  // what did not pass would have been measured again
  int most_rounds = 0;          // of a gate until it is decided; 0: it is none
};

// The smallest slowdown of one point that would have ended red in 95 % of such gates, at the noise
// of the noisiest point, as high as its runs leave open. Empty: it is not known, or none is.
std::optional<double> seen_slowdown(const Judgement& judgement, const GateKind& kind);

// "--threshold" for time, "--serial-fraction-threshold" and so on for the others.
std::string threshold_option(const QuantityInfo& info);

}  // namespace paceline
