#include "analysis/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "engine/core/error.h"

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

struct Coverage {
  double paired = 0, welch = 0;
};

// Share of 95 % intervals of a true ratio of 1.7 that hold it, from 5 runs each; `drift` is the
// noise that the two runs of a round share.
Coverage coverage(double drift) {
  constexpr int kTrials = 400, kRuns = 5;
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  Coverage covered;
  const auto holds = [](const Ratio& ratio) {
    return ratio.estimate.interval->low <= 1.7 && 1.7 <= ratio.estimate.interval->high;
  };
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> base, row, log_ratios;
    for (int run = 0; run < kRuns; ++run) {
      const double shared = drift * normal(engine);
      base.push_back(17 * std::exp(shared + 0.02 * normal(engine)));
      row.push_back(10 * std::exp(shared + 0.02 * normal(engine)));
      log_ratios.push_back(std::log(base.back() / row.back()));
    }
    covered.paired += holds(paired_ratio(log_ratios)) / double{kTrials};
    covered.welch += holds(independent_ratio(base, row)) / double{kTrials};
  }
  return covered;
}

TEST(Statistics, IntervalsCoverAsOftenAsTheySay) {
  for (const double drift : {0.0, 0.1}) {
    EXPECT_GE(coverage(drift).paired, 0.92) << drift;
    EXPECT_LE(coverage(drift).paired, 0.98) << drift;
  }
  EXPECT_GE(coverage(0).welch, 0.92);
  EXPECT_LE(coverage(0).welch, 0.98);
  // Under drift Welch's is far too wide: that is why runs of a round are paired.
  EXPECT_GT(coverage(0.1).welch, 0.99);
}

}  // namespace
}  // namespace paceline
