// Laws of scaling: found again in data that they made, and held against published series.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "analysis/predict/laws.h"

namespace paceline {
namespace {

const std::vector<double> kSizes = {1, 2, 4, 8, 16, 32};

std::vector<SizedCost> made_by(const Law& law, double overhead) {
  std::vector<SizedCost> points;
  for (const double p : kSizes) {
    double cost = 3;
    for (std::size_t i = 1; i < law.terms.size(); ++i) cost += overhead * law.terms[i](p);
    points.push_back({p, cost});
  }
  return points;
}

const LawWeight& law_named(const Forecast& forecast, std::string_view name) {
  return *std::ranges::find_if(forecast.laws(),
                               [&](const LawWeight& each) { return each.law.name() == name; });
}

TEST(Forecast, FindsEachLawInDataThatItMade) {
  for (const Scaling scaling : {Scaling::strong, Scaling::fixed_epochs, Scaling::weak}) {
    for (const Law& law : laws_for(scaling, kSizes.size())) {
      const std::vector<SizedCost> points = made_by(law, 0.02);
      const Forecast forecast(points, scaling);
      const LawWeight& found = law_named(forecast, law.name);
      EXPECT_NEAR(found.error, 0, 1e-3) << law.name;
      for (const LawWeight& other : forecast.laws()) {
        EXPECT_LE(other.weight, found.weight * (1 + 1e-3)) << law.name << " " << other.law.name();
      }
      double truth = 3;
      for (std::size_t i = 1; i < law.terms.size(); ++i) truth += 0.02 * law.terms[i](256);
      EXPECT_NEAR(found.law.at(256) / truth, 1, 1e-3) << law.name;
      const Interval interval = forecast.interval(256);
      EXPECT_LT(interval.low, truth) << law.name;
      EXPECT_GT(interval.high, truth) << law.name;
    }
  }
}

TEST(Forecast, AStepOfStrongScalingHasItsOverheadOnEveryReplica) {
  // Steps of 1/p and an overhead of 0.01 log2 p: worker-time 1 + 0.01 p log2 p.
  std::vector<SizedCost> points;
  for (const double p : kSizes) points.push_back({p, p * (1 / p + 0.01 * std::log2(p))});
  const Forecast strong(points, Scaling::strong), weak(points, Scaling::weak);
  EXPECT_NEAR(law_named(strong, "log p").error, 0, 1e-6);
  EXPECT_LT(law_named(weak, "log p").error, -0.3);
}

TEST(Forecast, IdealScalingStaysIdealAndItsIntervalGrowsWithTheDistance) {
  const Forecast forecast({{1, 5}, {2, 5}, {4, 5}}, Scaling::weak);
  EXPECT_NEAR(forecast.at(1024), 5, 1e-6);
  const auto half = [&](double p) { return std::log(forecast.interval(p).high / 5); };
  EXPECT_NEAR(half(8), 1.6449 * 0.025, 1e-4);
  EXPECT_NEAR(half(1024), 8 * half(8), 1e-4);
}

TEST(Forecast, NoiseOfTheRunsWidensTheInterval) {
  const std::vector<SizedCost> points = {{1, 5}, {2, 5}, {4, 5}};
  const Interval quiet = Forecast(points, Scaling::weak).interval(8);
  const Interval noisy = Forecast(points, Scaling::weak, 0.1).interval(8);
  EXPECT_GT(noisy.high / noisy.low, 1.2 * quiet.high / quiet.low);
}

TEST(Forecast, TwoSizesJudgeNoLaw) {
  const Forecast forecast({{1, 5}, {2, 5.5}}, Scaling::weak);
  ASSERT_EQ(forecast.laws().size(), 5U);  // the USL would be Amdahl's again
  for (const LawWeight& law : forecast.laws()) EXPECT_NEAR(law.weight, 0.2, 1e-12);
  EXPECT_NEAR(*held_out_error({{1, 5}, {2, 5.5}}, Scaling::weak), 5 / 5.5 - 1, 1e-12);
  EXPECT_FALSE(held_out_error({{1, 5}}, Scaling::weak));
}

TEST(Forecast, TheHeldOutErrorDoesNotSeeTheHeldOutSize) {
  std::vector<SizedCost> points = {{1, 5}, {2, 5.2}, {4, 5.4}, {8, 5.6}};
  const auto predicted = [&] {
    return (1 + *held_out_error(points, Scaling::weak)) * points.back().cost;
  };
  const double before = predicted();
  points.back().cost = 50;
  EXPECT_NEAR(predicted(), before, 1e-9);
}

}  // namespace
}  // namespace paceline
