#include "analysis/plan/power.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/gate/judge.h"
#include "analysis/statistics/anytime.h"
#include "analysis/statistics/robust.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/random.h"

namespace paceline {

namespace {

double normal_below(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

// Estimated error over true error: the midpoints of equally likely parts.
const std::vector<double>& error_ratios(double degrees_of_freedom) {
  constexpr int kParts = 200;
  thread_local std::map<double, std::vector<double>> known;
  std::vector<double>& ratios = known[degrees_of_freedom];
  if (!ratios.empty()) return ratios;
  const boost::math::chi_squared_distribution<double> distribution(degrees_of_freedom);
  for (int i = 0; i < kParts; ++i) {
    const double chi = boost::math::quantile(distribution, (i + 0.5) / kParts);
    ratios.push_back(std::sqrt(chi / degrees_of_freedom));
  }
  return ratios;
}

// Mean of `of(estimated error / true error)`.
double over_errors(const Precise& precise, const std::function<double(double ratio)>& of) {
  const std::vector<double>& ratios = error_ratios(precise.degrees_of_freedom);
  double sum = 0;
  for (const double ratio : ratios) sum += of(ratio);
  return sum / static_cast<double>(ratios.size());
}

// Probability of k successes in n trials, for all k.
std::vector<double> binomial(std::size_t n, double p) {
  std::vector<double> chances = {1};
  for (std::size_t i = 0; i < n; ++i) {
    chances.push_back(0);
    for (std::size_t k = chances.size(); k-- > 0;) {
      chances[k] = chances[k] * (1 - p) + (k > 0 ? chances[k - 1] * p : 0);
    }
  }
  return chances;
}

// That of runs that stand out on either side, not more are of the current one.
double chance_of_no_more(std::size_t standing_out) {
  const auto chances = binomial(standing_out, 0.5);
  double sum = 0;
  for (std::size_t k = 0; 2 * k <= standing_out; ++k) sum += chances[k];
  return sum;
}

// Mean of `of(precision of the rounds that are compared)`; 0 where too many are left aside.
double over_left_aside(const Rounds& rounds, bool is_of_pass,
                       const std::function<double(const Precise&)>& of) {
  const auto all = static_cast<std::size_t>(rounds.count);
  const auto chances = binomial(all, rounds.left_aside);
  double sum = 0;
  for (std::size_t k = 0; k <= most_outlying(all); ++k) {
    if (all - k < kFewestRuns || chances[k] < 1e-6) continue;
    const auto kept = static_cast<double>(all - k);
    sum += chances[k] * (is_of_pass ? chance_of_no_more(k) : 1) *
           of({rounds.sd / std::sqrt(kept), kept - 1});
  }
  return sum;
}

int fewest(const std::function<double(int)>& chance, double power) {
  for (int n = static_cast<int>(kFewestRuns); n <= kMostRounds; n += 1 + n / 25) {
    if (chance(n) >= power) return n;
  }
  return 0;
}

}  // namespace

Limits make_limits(double threshold, bool is_factor) {
  return is_factor ? Limits{std::log1p(threshold), std::log1p(2 * threshold)}
                   : Limits{threshold, 2 * threshold};
}

Precise of_sessions(int sessions, double sd) {
  return {sd * std::sqrt(2.0 / sessions), 2.0 * sessions - 2};
}

double chance_of_pass(const Limits& limits, const Precise& precise, double effect) {
  const double quantile = t_quantile(precise.degrees_of_freedom);
  return over_errors(precise, [&](double ratio) {
    const double bound = limits.twice_threshold - quantile * ratio * precise.error;
    return normal_below((std::min(limits.threshold, bound) - effect) / precise.error);
  });
}

double chance_of_regression(const Limits& limits, const Precise& precise, double effect,
                            std::size_t tests) {
  const double quantile =
      t_quantile(precise.degrees_of_freedom, 1 - kSignificance / static_cast<double>(tests));
  return over_errors(precise, [&](double ratio) {
    const double bound = std::max(limits.threshold, quantile * ratio * precise.error);
    return normal_below((effect - bound) / precise.error);
  });
}

double chance_confirmed(const Limits& limits, const Rounds& rounds, double effect,
                        std::size_t others) {
  const double suspected = 1 - over_left_aside(rounds, true, [&](const Precise& precise) {
                             return chance_of_pass(limits, precise, effect);
                           });
  const double equal_suspected = 1 - over_left_aside(rounds, true, [&](const Precise& precise) {
                                   return chance_of_pass(limits, precise, 0);
                                 });
  const auto chances = binomial(others, equal_suspected);
  double red = 0;
  for (std::size_t k = 0; k < chances.size(); ++k) {
    if (chances[k] < 1e-4) continue;
    red += chances[k] * over_left_aside(rounds, false, [&](const Precise& precise) {
             return chance_of_regression(limits, precise, effect, k + 1);
           });
  }
  return suspected * red;
}

int rounds_needed(const Limits& limits, double sd, double left_aside, double effect,
                  std::size_t others, double power) {
  return fewest(
      [&](int n) {
        return chance_confirmed(limits, Rounds{n, sd, left_aside}, effect, others);
      },
      power);
}

int sessions_needed(const Limits& limits, double sd, double effect, std::size_t others,
                    double power) {
  return fewest(
      [&](int n) { return chance_of_regression(limits, of_sessions(n, sd), effect, others + 1); },
      power);
}

double smallest_seen(const std::function<double(double effect)>& chance, double power) {
  double low = 0, high = 1;
  if (chance(high) < power) return std::numeric_limits<double>::infinity();
  while (high - low > 1e-4 * high) {
    const double middle = (low + high) / 2;
    (chance(middle) < power ? low : high) = middle;
  }
  return high;
}

SequentialOutcome until_decided(const Limits& limits, const Rounds& rounds, double effect,
                                std::size_t tests, int most, int gates) {
  const double limit = static_cast<double>(tests) / kSignificance;
  const int fewest_to_pass = std::min(most, static_cast<int>(runs_that_exclude(kHangsToSee, 0)));
  RandomSequence random(1, Stream::synthetic, 0);
  SequentialOutcome sequel;
  for (int gate = 0; gate < gates; ++gate) {
    std::vector<double> differences;
    double sum = 0;
    std::array<std::size_t, 2> standing_out{};  // of the baseline, of the current side
    for (int n = 1; n <= most; ++n) {
      const bool is_aside = rounds.left_aside > 0 && random.uniform() < rounds.left_aside;
      if (is_aside) ++standing_out.at(random.uniform() < 0.5 ? 0 : 1);
      if (!is_aside) differences.push_back(effect + rounds.sd * random.normal());
      if (!is_aside) sum += differences.back();
      const bool is_enough = differences.size() >= kFewestSequentialRuns;
      if (!is_enough && n < most) continue;
      const double mean = sum / static_cast<double>(differences.size());
      bool red = false, passed = false;
      if (is_enough) {
        const AnytimeRounds test(differences);
        const bool may_decide = test.resemblance() <= kMostResemblance;
        red = may_decide && mean > limits.threshold && test.evidence_against(0) > limit;
        passed = may_decide && mean < limits.threshold && n >= fewest_to_pass &&
                 standing_out[1] <= standing_out[0] &&
                 test.evidence_against(limits.twice_threshold) > 1 / (1 - kConfidence);
      }
      if (!red && !passed && n < most) continue;
      sequel.rounds += n;
      sequel.decided += red || passed;
      sequel.regression += red;
      break;
    }
  }
  const auto all = static_cast<double>(gates);
  return {sequel.rounds / all, sequel.decided / all, sequel.regression / all};
}

}  // namespace paceline
