#include "analysis/statistics/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "engine/core/error.h"
#include "tests/support/ratios.h"

namespace paceline {
namespace {

// Tables of Student's t in any textbook.
TEST(Statistics, QuantilesOfStudentsT) {
  EXPECT_NEAR(t_quantile(1), 12.706, 5e-4);
  EXPECT_NEAR(t_quantile(2), 4.303, 5e-4);
  EXPECT_NEAR(t_quantile(10), 2.228, 5e-4);
  EXPECT_NEAR(t_quantile(10, 0.99), 3.169, 5e-4);
}

TEST(Statistics, GeometricMeanWithInterval) {
  // Logs 1, 2, 3: mean 2, standard error 1 / sqrt 3, t(2) = 4.3027.
  const std::vector<double> values = {std::exp(1), std::exp(2), std::exp(3)};
  const Estimate estimate = geometric_mean(values);
  EXPECT_NEAR(estimate.value, std::exp(2), 1e-9);
  ASSERT_TRUE(estimate.interval);
  EXPECT_NEAR(std::log(estimate.interval->low), 2 - 4.302653 / std::sqrt(3), 1e-6);
  EXPECT_NEAR(std::log(estimate.interval->high), 2 + 4.302653 / std::sqrt(3), 1e-6);
}

TEST(Statistics, OneValueHasNoInterval) {
  const double one[] = {574};
  EXPECT_EQ(geometric_mean(one).value, 574);
  EXPECT_FALSE(geometric_mean(one).interval);
  EXPECT_EQ(paired_ratio(one).kind, RatioKind::single);
  const double two[] = {3, 4};
  const Ratio ratio = independent_ratio(one, two);
  EXPECT_EQ(ratio.kind, RatioKind::single);
  EXPECT_FALSE(ratio.estimate.interval);
  EXPECT_NEAR(ratio.estimate.value, 574 / std::sqrt(12), 1e-9);
  EXPECT_THROW(geometric_mean(std::vector<double>{}), Error);
  EXPECT_THROW(geometric_mean(std::vector<double>{1, 0}), Error);
}

// Five runs of a budget: 1, 1, 1, 1 and 3 hours are 7, which is 5 times 1.4. Deviations 0.4 and 1.6
// have the variance 0.8.
TEST(Statistics, AmountsAddUp) {
  const double hours[] = {1, 1, 1, 1, 3}, ones[] = {1, 1, 1, 1, 1};
  const Estimate mean = ratio_of_sums(hours, ones);
  EXPECT_DOUBLE_EQ(mean.value, 1.4);
  EXPECT_NEAR(mean.interval->high, 1.4 + t_quantile(4) * std::sqrt(0.8 / 5), 1e-9);
  const double apart[] = {1, 9};
  EXPECT_EQ(ratio_of_sums(apart, std::span(ones, 2)).interval->low, 0) << "no cost is negative";
  EXPECT_FALSE(ratio_of_sums(std::span(hours, 1), std::span(ones, 1)).interval);
}

// Joules over samples of runs of 100 and 300 samples: 500 / 400, not the mean of 2 and 1.
TEST(Statistics, RatiosAreOfSums) {
  const double joules[] = {200, 300}, samples[] = {100, 300};
  EXPECT_DOUBLE_EQ(ratio_of_sums(joules, samples).value, 1.25);
  const double alike[] = {125, 375};
  EXPECT_NEAR(ratio_of_sums(alike, samples).interval->high, 1.25, 1e-12);
}

TEST(Statistics, EqualValuesHaveAnIntervalOfNoWidth) {
  const double same[] = {2, 2, 2}, other[] = {4, 4};
  EXPECT_DOUBLE_EQ(geometric_mean(same).interval->low, geometric_mean(same).interval->high);
  const Ratio ratio = independent_ratio(other, same);
  EXPECT_NEAR(ratio.estimate.value, 2, 1e-12);
  EXPECT_NEAR(ratio.estimate.interval->high, 2, 1e-12);
}

// Welch on 27.5 21.0 19.0 23.6 17.0 and 27.1 22.0 20.8 23.4 (as logs): means 21.62 and 23.325,
// variances 16.772 and 7.4625: t = -0.7463 with 6.858 degrees of freedom.
TEST(Statistics, WelchByHand) {
  std::vector<double> a, b;
  for (const double x : {27.5, 21.0, 19.0, 23.6, 17.0}) a.push_back(std::exp(x));
  for (const double x : {27.1, 22.0, 20.8, 23.4}) b.push_back(std::exp(x));
  const Ratio ratio = independent_ratio(a, b);
  EXPECT_EQ(ratio.kind, RatioKind::welch);
  EXPECT_NEAR(std::log(ratio.estimate.value), -1.705, 1e-9);
  EXPECT_NEAR(std::log(ratio.estimate.interval->high),
              -1.705 + t_quantile(6.8581) * std::sqrt(16.772 / 5 + 7.4625 / 4), 1e-4);
}

// Student's t with 4 degrees of freedom at 2.776 has p = 0.05 (any textbook); the two others have
// no spread and no error to judge by.
TEST(Statistics, PValuesOfDifferences) {
  EXPECT_NEAR((Difference{2.776, 1, 4, 5}.p_value()), 0.05, 1e-4);
  EXPECT_NEAR((Difference{-2.776, 1, 4, 5}.p_value()), 0.05, 1e-4);
  EXPECT_EQ((Difference{0.1, 0, 4, 5}.p_value()), 0);
  EXPECT_EQ((Difference{0, 0, 4, 5}.p_value()), 1);
  const double one[] = {3}, two[] = {4};
  EXPECT_EQ(independent_difference(one, two).p_value(), 1);
  EXPECT_FALSE(pooled_difference(one, two).interval());
}

// Means 4 and 1, variances 1 (3 values) and 0 (1): pooled variance 1, error sqrt(1 + 1/3).
TEST(Statistics, OneValueAgainstSeveralOfTheSameSpread) {
  const double several[] = {3, 4, 5}, one[] = {1};
  const Difference difference = pooled_difference(several, one);
  EXPECT_NEAR(difference.mean, 3, 1e-12);
  EXPECT_NEAR(difference.standard_error, std::sqrt(4.0 / 3), 1e-12);
  EXPECT_EQ(difference.degrees_of_freedom, 2);
}

// By hand: sorted 0.01, 0.02, 0.03, 0.6 times 4, 3, 2, 1, never below the one before.
TEST(Statistics, HolmByHand) {
  const double p[] = {0.03, 0.6, 0.01, 0.02};
  const std::vector<double> adjusted = holm_adjusted(p);
  const double expected[] = {0.06, 0.6, 0.04, 0.06};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << i;
  const double large[] = {0.7, 0.9};
  EXPECT_EQ(holm_adjusted(large)[0], 1);
  EXPECT_TRUE(holm_adjusted({}).empty());
}

// One of 60 true nulls is rejected in at most 5 % of families, and in about 95 % without Holm.
TEST(Statistics, HolmKeepsFamiliesOfNoiseQuiet) {
  constexpr int kFamilies = 2000, kTests = 60;
  std::mt19937_64 engine(11);
  std::uniform_real_distribution<double> uniform;
  int red = 0, red_without = 0;
  for (int group = 0; group < kFamilies; ++group) {
    std::vector<double> p(kTests);
    std::generate(p.begin(), p.end(), [&] { return uniform(engine); });
    const auto below = [](const std::vector<double>& all) {
      return std::any_of(all.begin(), all.end(), [](double value) { return value < 0.05; });
    };
    red += below(holm_adjusted(p));
    red_without += below(p);
  }
  EXPECT_LE(red, 0.06 * kFamilies);
  EXPECT_GE(red, 0.04 * kFamilies);
  EXPECT_GE(red_without, 0.9 * kFamilies);
}

struct Coverage {
  double paired = 0, welch = 0;
};

// Share of 95 % intervals of a true ratio of 1.7 that hold it, in 2,000 studies of 5 runs a side:
// paired over rounds whose `drift` both sides share, and Welch's over rounds of each side's own.
Coverage coverage(double drift) {
  constexpr int kStudies = 2000, kRuns = 5;
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  Coverage covered;
  const auto holds = [](const Ratio& ratio) {
    return ratio.estimate.interval->low <= 1.7 && 1.7 <= ratio.estimate.interval->high;
  };
  for (int study = 0; study < kStudies; ++study) {
    std::vector<double> base, row, log_ratios;
    for (int run = 0; run < kRuns; ++run) {
      const double round = drift * normal(engine), other_round = drift * normal(engine);
      base.push_back(17 * std::exp(round + 0.02 * normal(engine)));
      const double noise = 0.02 * normal(engine);
      log_ratios.push_back(std::log(base.back() / (10 * std::exp(round + noise))));
      row.push_back(10 * std::exp(other_round + noise));
    }
    covered.paired += holds(paired_ratio(log_ratios)) / double{kStudies};
    covered.welch += holds(independent_ratio(base, row)) / double{kStudies};
  }
  return covered;
}

TEST(Statistics, IntervalsHaveTheirCoverage) {
  for (const double drift : {0.0, 0.02, 0.1}) {
    const Coverage covered = coverage(drift);
    EXPECT_GE(covered.paired, 0.93) << drift;
    EXPECT_LE(covered.paired, 0.97) << drift;
    EXPECT_GE(covered.welch, 0.93) << drift;
    EXPECT_LE(covered.welch, 0.97) << drift;
  }
}

// What pairing is for: under a drift of 10 % Welch's interval is many times as wide.
TEST(Statistics, PairingTakesTheDriftOut) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  std::vector<double> base, row, log_ratios;
  for (int run = 0; run < 5; ++run) {
    const double round = 0.1 * normal(engine);
    base.push_back(17 * std::exp(round + 0.005 * normal(engine)));
    row.push_back(10 * std::exp(round + 0.005 * normal(engine)));
    log_ratios.push_back(std::log(base.back() / row.back()));
  }
  const auto width = [](const Ratio& ratio) {
    return ratio.estimate.interval->high - ratio.estimate.interval->low;
  };
  EXPECT_GT(width(independent_ratio(base, row)), 5 * width(paired_ratio(log_ratios)));
}

}  // namespace
}  // namespace paceline
