#include "analysis/plan/power.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "analysis/gate/judge.h"
#include "analysis/statistics/anytime.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/random.h"

namespace paceline {

namespace {

double normal_below(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

// Mean of `of(estimated error / true error)`, by the midpoints of equally likely parts.
double over_errors(const Precise& precise, const std::function<double(double ratio)>& of) {
  constexpr int kParts = 200;
  const boost::math::chi_squared_distribution<double> distribution(precise.degrees_of_freedom);
  double sum = 0;
  for (int i = 0; i < kParts; ++i) {
    const double chi = boost::math::quantile(distribution, (i + 0.5) / kParts);
    sum += of(std::sqrt(chi / precise.degrees_of_freedom));
  }
  return sum / kParts;
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

int fewest(const std::function<double(int)>& chance, double power) {
  for (int n = static_cast<int>(kFewestRuns); n <= kMostRounds; n += 1 + n / 25) {
    if (chance(n) >= power) return n;
  }
  return 0;
}

}  // namespace

Limits limits_of(double threshold, bool is_factor) {
  return is_factor ? Limits{std::log1p(threshold), std::log1p(2 * threshold)}
                   : Limits{threshold, 2 * threshold};
}

Precise of_rounds(int rounds, double sd) {
  return {sd / std::sqrt(rounds), rounds - 1.0};
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

double chance_confirmed(const Limits& limits, const Precise& precise, double effect,
                        std::size_t others) {
  const double suspected = 1 - chance_of_pass(limits, precise, effect);
  const auto chances = binomial(others, 1 - chance_of_pass(limits, precise, 0));
  double red = 0;
  for (std::size_t k = 0; k < chances.size(); ++k) {
    if (chances[k] < 1e-4) continue;
    red += chances[k] * chance_of_regression(limits, precise, effect, k + 1);
  }
  return suspected * red;
}

int rounds_needed(const Limits& limits, double sd, double effect, std::size_t others,
                  double power) {
  return fewest([&](int n) { return chance_confirmed(limits, of_rounds(n, sd), effect, others); },
                power);
}

int sessions_needed(const Limits& limits, double sd, double effect, std::size_t others,
                    double power) {
  return fewest(
      [&](int n) { return chance_of_regression(limits, of_sessions(n, sd), effect, others + 1); },
      power);
}

double smallest_seen(const Limits& limits, const Precise& precise, std::size_t others,
                     double power) {
  double low = 0, high = 1;
  if (chance_confirmed(limits, precise, high, others) < power) {
    return std::numeric_limits<double>::infinity();
  }
  while (high - low > 1e-5) {
    const double middle = (low + high) / 2;
    (chance_confirmed(limits, precise, middle, others) < power ? low : high) = middle;
  }
  return high;
}

Sequel until_decided(const Limits& limits, double sd, double effect, std::size_t tests, int most) {
  constexpr int kGates = 4000;
  RandomSequence random(1, Stream::synthetic, 0);
  Sequel sequel;
  for (int gate = 0; gate < kGates; ++gate) {
    double mean = 0, squares = 0;  // Welford's
    for (int n = 1;; ++n) {
      const double value = effect + sd * random.normal(), before = mean;
      mean += (value - mean) / n;
      squares += (value - before) * (value - mean);
      if (n < static_cast<int>(kFewestRuns)) continue;
      const auto count = static_cast<std::size_t>(n);
      const double error = std::sqrt(squares / (n - 1) / n);
      const double evidence = anytime_evidence(mean / error, count);
      const bool red =
          mean > limits.threshold && evidence > static_cast<double>(tests) / kSignificance;
      const bool passed =
          mean < limits.threshold &&
          mean + anytime_quantile(count, kConfidence) * error < limits.twice_threshold;
      if (!red && !passed && n < most) continue;
      sequel.rounds += n;
      sequel.decided += red || passed;
      sequel.regression += red;
      break;
    }
  }
  return {sequel.rounds / kGates, sequel.decided / kGates, sequel.regression / kGates};
}

}  // namespace paceline
