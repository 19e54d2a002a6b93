#include "analysis/statistics/robust.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

using Values = std::vector<double>;
using Noise = std::function<double(std::mt19937_64&)>;  // of a run's logarithm, median 0

bool holds(const Difference& difference, double truth) {
  const auto interval = difference.interval();
  return interval && interval->low <= truth && truth <= interval->high;
}

Values draws(std::size_t count, double center, const Noise& noise, std::mt19937_64& engine) {
  Values values(count);
  for (double& value : values) value = center + noise(engine);
  return values;
}

double normal(std::mt19937_64& engine) {
  return 0.01 * std::normal_distribution<double>()(engine);
}

double heavy_tailed(std::mt19937_64& engine) {
  return 0.01 * std::student_t_distribution<double>(3)(engine);
}

// One run in ten takes 1.3 to 2 times as long.
double busy(std::mt19937_64& engine) {
  const double noise = normal(engine);
  if (!std::bernoulli_distribution(0.1)(engine)) return noise;
  return noise + std::log(std::uniform_real_distribution<double>(1.3, 2)(engine));
}

struct Rates {
  double paired = 0, independent = 0;
};

// Share of the 95 % intervals of 4,000 comparisons of `count` runs each that hold the truth.
Rates coverage(std::size_t count, const Noise& noise) {
  constexpr int kTrials = 4000;
  std::mt19937_64 engine(17);
  Rates covered;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Values left = draws(count, 0.3, noise, engine), right = draws(count, 0, noise, engine);
    Values differences;
    for (std::size_t i = 0; i < count; ++i) differences.push_back(left[i] - right[i]);
    covered.paired += holds(trimmed_difference(differences), 0.3) / double{kTrials};
    covered.independent += holds(trimmed_difference(left, right), 0.3) / double{kTrials};
  }
  return covered;
}

// 1 2 3 4 100: mean of 2 3 4; winsorized 2 2 3 4 4, whose squares sum to 4, over 3 x 2. Of one
// sample of which 3 count, the error is 1 + 1.4 / 9 times as large.
TEST(Robust, TrimmedMeanByHand) {
  const double values[] = {100, 3, 1, 4, 2};
  const Difference mean = trimmed_difference(values);
  EXPECT_DOUBLE_EQ(mean.mean, 3);
  EXPECT_NEAR(mean.standard_error, std::sqrt(4.0 / 6) * (1 + 1.4 / 9), 1e-12);
  EXPECT_EQ(mean.degrees_of_freedom, 2);
  EXPECT_EQ(mean.count, 5u);
}

// Of 10 values two on each side do not count.
TEST(Robust, ALargerFifthOfMoreValues) {
  const Values values = {1, 2, 3, 4, 5, 6, 7, 8, 90, 100};
  EXPECT_DOUBLE_EQ(trimmed_difference(values).mean, 5.5);
  EXPECT_EQ(trimmed_difference(values).degrees_of_freedom, 5);
}

// Yuen's example, with one variance: both sides 4/6 of the mean's variance, 2 + 2 degrees.
TEST(Robust, TwoSidesByHand) {
  const double left[] = {1, 2, 3, 4, 100}, right[] = {-50, 1, 0, 2, 7};
  const Difference difference = trimmed_difference(left, right);
  EXPECT_DOUBLE_EQ(difference.mean, 3 - 1);
  EXPECT_NEAR(difference.standard_error, std::sqrt(4.0 / 6 + 4.0 / 6), 1e-12);
  EXPECT_NEAR(difference.degrees_of_freedom, 4, 1e-12);
}

TEST(Robust, FewValuesHaveNoError) {
  const double three[] = {1, 2, 50}, two[] = {1, 2};
  EXPECT_DOUBLE_EQ(trimmed_difference(three).mean, 2);
  EXPECT_FALSE(trimmed_difference(three).interval());
  EXPECT_EQ(trimmed_difference(three).p_value(), 1);
  EXPECT_DOUBLE_EQ(trimmed_difference(two).mean, 1.5);
  EXPECT_FALSE(trimmed_difference(three, two).interval());
}

// A clock of few digits: what counts is equal, so it does not tell how much runs vary.
TEST(Robust, SpreadThatIsTrimmedAwayIsNoCertainty) {
  const double most[] = {1, 1, 1, 1, 7}, all[] = {1, 1, 1, 1, 1};
  EXPECT_FALSE(trimmed_difference(most).interval());
  EXPECT_DOUBLE_EQ(trimmed_difference(all).interval()->high, 1);
}

TEST(Robust, IntervalsCoverWhateverTheTails) {
  for (const Noise& noise : {Noise(normal), Noise(heavy_tailed), Noise(busy)}) {
    for (const std::size_t count : {4, 5, 7, 10, 20, 30}) {
      const Rates covered = coverage(count, noise);
      EXPECT_GE(covered.paired, 0.94) << count;
      EXPECT_GE(covered.independent, 0.94) << count;
    }
  }
}

TEST(Robust, BothTestsTogetherShareTheErrorRate) {
  const Difference none{0.0, 1, 4, 5}, sure{5.0, 1, 1000, 5};
  EXPECT_EQ(combined_p_value(none, none), 1);
  EXPECT_DOUBLE_EQ(combined_p_value(sure, none), sure.p_value() / 0.8);
  EXPECT_DOUBLE_EQ(combined_p_value(none, sure), sure.p_value() / 0.2);
  std::mt19937_64 engine(29);
  constexpr int kTrials = 4000;
  double found = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Values left = draws(5, 0, normal, engine), right = draws(5, 0, normal, engine);
    const double p =
        combined_p_value(independent_difference(left, right), trimmed_difference(left, right));
    found += (p < 0.05) / double{kTrials};
  }
  EXPECT_LE(found, 0.055);
}

// A side of 10 % certainly slower runs is found at 5 runs though one in ten is slow by chance.
TEST(Robust, FindsWhatOutliersHideFromMeans) {
  constexpr int kTrials = 2000;
  std::mt19937_64 engine(23);
  double trimmed = 0, of_means = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Values slow = draws(5, 0.1, busy, engine), fast = draws(5, 0, busy, engine);
    trimmed += (trimmed_difference(slow, fast).p_value() < 0.05) / double{kTrials};
    of_means += (independent_difference(slow, fast).p_value() < 0.05) / double{kTrials};
  }
  EXPECT_GT(trimmed, 0.8);
  EXPECT_LT(of_means, 0.6);
}

// 2 replicas are twice as fast, but one of their runs took 20 times as long.
std::string findings_with_outlier(double times) {
  const std::vector<double> noise = {1.0, 1.01, 0.99, 1.005, 0.995};
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    for (const int gpus : {1, 2, 4}) {
      const double factor = gpus == 2 && round == 3 ? times : 1;
      const double off = noise[static_cast<std::size_t>((round + gpus) % 5)];
      records.push_back(sample_record(
          {.gpus = gpus, .repeat = round, .fit_seconds = 100.0 / gpus * factor * off}));
    }
  }
  return findings_text(report_section(records));
}

TEST(Robust, SpeedUpsWithoutAnOutlierStandBesideTheOthers) {
  const std::string outlier = findings_with_outlier(20);
  expect_parts(outlier, {"without the fastest and the slowest runs of each row (trimmed means): 2 "
                         "replicas: speed-up 1.99 [1.89, 2.10]"});
  expect_no_parts(outlier, {"4 replicas: speed-up"});
  expect_no_parts(findings_with_outlier(1), {"trimmed"});
}

// Exact, over all looks from the fourth on: that rounds with runs that stand out, on either side
// with these shares, are found to have significantly more on the current side.
double chance_of_more(double current, double baseline, std::size_t rounds, bool looks,
                      double level) {
  std::vector<Values> chances(rounds + 1, Values(rounds + 1));
  chances[0][0] = 1;
  const double worse = current * (1 - baseline), better = baseline * (1 - current);
  double found = 0;
  for (std::size_t n = 1; n <= rounds; ++n) {
    for (std::size_t k = n + 1; k-- > 0;) {
      for (std::size_t m = n - k + 1; m-- > 0;) {
        double& chance = chances[k][m];
        chance *= 1 - worse - better;
        if (k > 0) chance += worse * chances[k - 1][m];
        if (m > 0) chance += better * chances[k][m - 1];
      }
    }
    if (n < (looks ? 4 : rounds)) continue;
    for (std::size_t k = 0; k <= n; ++k) {
      for (std::size_t m = 0; k + m <= n; ++m) {
        if (p_of_more_standing_out(k, m, n, looks ? rounds : 0) >= level) continue;
        found += std::exchange(chances[k][m], 0.0);
      }
    }
  }
  return found;
}

TEST(Robust, MoreRunsThatStandOutAreSignificantAsOftenAsPromised) {
  for (const std::size_t rounds : {5UL, 12UL, 20UL, 40UL}) {
    for (const double share : {0.01, 0.03, 0.05, 0.07, 0.1, 0.2, 0.4, 0.5}) {
      EXPECT_LE(chance_of_more(share, share, rounds, false, 0.05), 0.03) << rounds << ' ' << share;
      EXPECT_LE(chance_of_more(share, share, rounds, true, 0.05), rounds < 20 ? 0.06 : 0.053)
          << rounds << ' ' << share;
      EXPECT_LE(chance_of_more(share, share, rounds, true, 0.025), 0.025) << rounds << ' ' << share;
    }
  }
  EXPECT_GT(chance_of_more(0.1, 0, 40, true, 0.05), 0.77);
  EXPECT_GT(chance_of_more(0.2, 0, 40, true, 0.05), 0.99);
  EXPECT_GT(chance_of_more(0.3, 0, 40, true, 0.01), 0.97);
}

TEST(Robust, ManyRunsExcludeAShare) {
  EXPECT_EQ(runs_that_exclude(0.1, 0), 29U);
  EXPECT_EQ(runs_that_exclude(0.1, 1), 46U);
  EXPECT_EQ(runs_that_exclude(0.12, 1), 38U);
  EXPECT_NEAR(share_shown(29), 0.098, 0.001);
}

}  // namespace
}  // namespace paceline
