// One quantity of one point on both sides: the difference, its uncertainty and the verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/judge.h"
#include "analysis/gate/left_aside.h"
#include "analysis/statistics/anytime_rounds.h"

namespace paceline {

struct Weighed {
  Check check;
  Difference difference;
  double units = 0;     // rounds, sessions or runs per side, if both have equally many
  Compared compared{};  // without its samples
  std::optional<AnytimeRounds> rounds{};  // of a gate that goes on until it is decided
};

// `stopping` is that of rounds and runs, not of sessions.
Weighed weigh_samples(const std::string& subject, const QuantityInfo& info, const Samples& baseline,
                      const Samples& current, double threshold, const SideNames& names = {},
                      Stopping stopping = Stopping::fixed);

// Fills in the check's difference.
void fill_in(Weighed& weighed);

// Sets the verdict of one of `checks` checks, after p was adjusted for all of them.
void decide(Weighed& weighed, std::size_t checks);

}  // namespace paceline
