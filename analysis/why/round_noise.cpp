#include "analysis/why/round_noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "results/step_samples.h"

namespace paceline {

RoundNoise::RoundNoise(const std::vector<WhyRound>& rounds, bool by_samples) {
  for (const WhyRound& round : rounds) {
    const auto whole = round.find(kAsItIs);
    if (whole == round.end()) continue;
    for (const auto& [program, run] : round) {
      if (program == kAsItIs) continue;
      if (!run.program.empty()) in_turns_.insert(program);
      ratios_[program].push_back(std::log(run.cost(by_samples) / whole->second.cost(by_samples)));
    }
  }
}

VarianceOfOthers RoundNoise::of_others(const std::vector<std::string>& programs) const {
  const bool took_turns =
      std::ranges::all_of(programs, [&](const auto& each) { return in_turns_.contains(each); });
  std::vector<double> variances;
  double degrees = 0;
  for (const auto& [name, logs] : ratios_) {
    const Difference mean = paired_difference(logs, Stopping::by_results);
    const double own = mean.degrees_of_freedom;
    if (std::ranges::count(programs, name) > 0 || own <= 0) continue;
    if (in_turns_.contains(name) != took_turns) continue;
    // The median of a variance with few degrees of freedom is below it (Wilson and Hilferty).
    const double below = std::pow(1 - 2 / (9 * own), 3);
    variances.push_back((own + 1) * mean.standard_error * mean.standard_error / below);
    degrees += own;
  }
  if (variances.empty()) return {};
  // A median, as one of them may be noisy by itself: 2 / pi as much worth as a mean. They share the
  // program as it is, so that squares of two of them correlate by a quarter.
  const double shared = 1 + (static_cast<double>(variances.size()) - 1) / 4;
  return {median(variances), 2 / std::numbers::pi * degrees / shared};
}

double RoundNoise::share(const std::string& program) const {
  const auto found = ratios_.find(program);
  return found == ratios_.end() ? 1 : std::exp(average(found->second));
}

Difference RoundNoise::ratio(const std::string& program) const {
  return paired_difference(ratios_.at(program), Stopping::by_results);
}

}  // namespace paceline
