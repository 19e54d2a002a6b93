#include "analysis/plan/design.h"

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
#include "engine/core/text.h"

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
  return average(mapped(error_ratios(precise.degrees_of_freedom), of));
}

double chance_of_pass(const Limits& limits, const Precise& precise, double effect) {
  const double quantile = t_quantile(precise.degrees_of_freedom);
  return over_errors(precise, [&](double ratio) {
    const double bound = limits.twice_threshold - quantile * ratio * precise.error;
    return normal_below((std::min(limits.threshold, bound) - effect) / precise.error);
  });
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

// The noisiest point of the spec, else of the pilot.
void find_noisiest(Design& design) {
  const auto& known = design.noise.points;
  const auto consider = [&](const std::string& name) {
    const auto it = known.find(name);
    if (it == known.end() || it->second.degrees_of_freedom <= 0) return;
    const double assumed = upper_sd(it->second.sd, it->second.degrees_of_freedom);
    if (assumed <= design.assumed) return;
    design.assumed = assumed;
    design.sd = it->second.sd;
    design.noisiest = name;
  };
  for (const std::string& name : design.request.points) consider(name);
  if (!design.noisiest.empty()) return;
  for (const auto& [name, point] : known) consider(name);
}

// The share of pairs of runs in which either run is an outlier.
double share_of_pairs(double share_of_runs) {
  return 1 - (1 - share_of_runs) * (1 - share_of_runs);
}

void add_hours(Design& design) {
  double hours = 0;
  for (const std::string& name : design.request.points) {
    const auto it = design.noise.points.find(name);
    if (it == design.noise.points.end() || !it->second.hours) {
      ++design.points_without_hours;
    } else {
      hours += 2 * *it->second.hours;
    }
  }
  if (hours > 0) design.hours_per_round = hours;
}

void add_sessions(Design& design, const Limits& limits, double effect) {
  const Level& session = design.noise.level("session");
  if (!session.sd) return;
  const double between = upper_sd(*session.sd, session.degrees_of_freedom);
  const double round = design.noise.level("round").sd.value_or(0);
  const double within = round * round + design.assumed * design.assumed;
  for (const int repeats : {1, 2, 3, 5, 10}) {
    SessionDesign each;
    each.repeats = repeats;
    const double sd = std::sqrt(between * between + within / repeats);
    each.sessions =
        sessions_needed(limits, sd, effect, design.request.points.size() - 1, design.request.power);
    const auto runs = static_cast<std::size_t>(each.sessions * repeats);
    each.runs = 2 * runs * design.request.points.size();
    if (design.hours_per_round) each.hours = *design.hours_per_round * static_cast<double>(runs);
    design.sessions.push_back(each);
  }
}

}  // namespace

Limits make_limits(double threshold, bool is_factor) {
  return is_factor ? Limits{std::log1p(threshold), std::log1p(2 * threshold)}
                   : Limits{threshold, 2 * threshold};
}

Precise of_sessions(int sessions, double sd) {
  return {sd * std::sqrt(2.0 / sessions), 2.0 * sessions - 2};
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

Noise stated_noise(double sd) {
  Noise noise;
  for (const char* name : {"step", "run", "round", "session", "node"}) {
    noise.levels.push_back({name, std::nullopt, 0, "not stated"});
  }
  noise.levels[1].sd = sd;
  noise.levels[1].remark = "stated";
  return noise;
}

Design make_design(const DesignRequest& request, const Noise& noise) {
  Design design;
  design.request = request;
  design.noise = noise;
  design.is_stated = noise.points.empty();
  if (design.is_stated) {
    design.sd = design.assumed = noise.level("run").sd.value_or(0);
  } else {
    find_noisiest(design);
  }
  // A difference of two runs of one round.
  const double pair = std::sqrt(2.0) * design.assumed;
  if (!design.is_stated && noise.runs > 0) {
    design.outlying = likely_share(noise.outlying, noise.runs);
    design.outlying_at_most = upper_share(noise.outlying, noise.runs);
  }
  const double aside = share_of_pairs(design.outlying);
  const std::size_t others = request.points.size() - 1;
  const Limits now = make_limits(request.threshold, true);
  const double seen = smallest_seen(
      [&](double effect) {
        return chance_confirmed(now, Rounds{request.rounds, pair, aside}, effect, others);
      },
      request.power);
  if (std::isfinite(seen)) design.seen = std::expm1(seen);
  design.threshold = request.detect / 2;
  const Limits limits = make_limits(design.threshold, true);
  const double effect = std::log1p(request.detect);
  design.rounds = rounds_needed(limits, pair, aside, effect, others, request.power);
  design.rounds_as_estimated =
      rounds_needed(limits, std::sqrt(2.0) * design.sd, aside, effect, others, request.power);
  design.rounds_at_most = rounds_needed(limits, pair, share_of_pairs(design.outlying_at_most),
                                        effect, others, request.power);
  if (design.is_stated && design.rounds > 0) {
    constexpr double kShare = 0.05;
    design.power_if_some_stand_out = chance_confirmed(
        limits, Rounds{design.rounds, pair, share_of_pairs(kShare)}, effect, others);
  }
  const Rounds each{0, pair, aside};
  design.equal = until_decided(limits, each, 0, others + 1, kMostRoundsUntilDecided);
  design.slower = until_decided(limits, each, effect, others + 1, kMostRoundsUntilDecided);
  design.runs = 2 * static_cast<std::size_t>(design.rounds) * request.points.size();
  add_hours(design);
  add_sessions(design, limits, effect);
  return design;
}

}  // namespace paceline
