// How noisy the rounds of `why` are.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/why/why.h"

namespace paceline {

// How the costs of other programs vary from round to round, beside those of the program as it is:
// logarithms of their ratios, by program. One machine disturbs them all, so that each says of the
// others how far few rounds may be off.
class RoundNoise {
 public:
  RoundNoise(const std::vector<WhyRound>& rounds, bool by_samples);

  // By all programs but these. Of programs that took turns in one process by the others that did,
  // which processes and times disturb less.
  VarianceOfOthers of_others(const std::vector<std::string>& programs) const;
  // The cost of the program over that of the program as it is, about; 1 where it has no run.
  double share(const std::string& program) const;
  // The mean of its logarithm, by its own rounds alone, as in all other studies.
  Difference ratio(const std::string& program) const;

 private:
  std::map<std::string, std::vector<double>> ratios_;
  std::set<std::string> in_turns_;
};

}  // namespace paceline
