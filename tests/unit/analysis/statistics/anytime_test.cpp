#include "analysis/statistics/anytime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "analysis/gate/judge.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/random.h"

namespace paceline {
namespace {

TEST(Anytime, TheQuantileIsWhereTheEvidenceReachesItsLimit) {
  for (const std::size_t count : {3UL, 4UL, 10UL, 100UL}) {
    const double quantile = anytime_quantile(count, 0.95);
    EXPECT_NEAR(anytime_evidence(quantile, count), 20, 1e-9) << count;
    EXPECT_NEAR(anytime_evidence(-quantile, count), 20, 1e-9) << "of either sign";
    EXPECT_LT(anytime_evidence(quantile * 0.9, count), 20);
  }
  // By hand, of the formula in the header with n = 5: (1 + 51 ...).
  const double t = 4, x = t * t / 4;
  EXPECT_NEAR(anytime_evidence(t, 5), std::pow((1 + x) / (1 + x / 51), 2.5) / std::sqrt(51.0),
              1e-12);
}

TEST(Anytime, FewValuesDecideNothing) {
  EXPECT_TRUE(std::isinf(anytime_quantile(1, 0.95)));
  EXPECT_TRUE(std::isinf(anytime_quantile(2, 0.95)));
  EXPECT_NEAR(anytime_quantile(3, 0.95), 13.2, 0.1);
  EXPECT_EQ(anytime_evidence(5, 1), 1);
  // Even equal values: evidence is bounded by their number.
  EXPECT_LT(anytime_evidence(std::numeric_limits<double>::infinity(), 2), 20);
  EXPECT_LT(anytime_evidence(0, 10), 1);
}

TEST(Anytime, IntervalsOfDifferencesFollow) {
  const std::vector<double> values = {0.10, 0.12, 0.11, 0.09, 0.13};
  const Difference fixed = paired_difference(values);
  const Difference any = paired_difference(values, Stopping::by_results);
  EXPECT_EQ(any.mean, fixed.mean);
  const double half = anytime_quantile(5, 0.95) * fixed.standard_error;
  EXPECT_NEAR(any.interval()->high, fixed.mean + half, 1e-12);
  EXPECT_LT(any.interval()->low, fixed.interval()->low);
  EXPECT_GT(any.p_value(), fixed.p_value());
  EXPECT_NEAR(any.p_value(), 1 / anytime_evidence(fixed.mean / fixed.standard_error, 5), 1e-12);
  // 5 % of each p is on either side of its interval's end.
  EXPECT_NEAR(paired_difference(values, Stopping::by_results).interval(1 - any.p_value())->low, 0,
              1e-9);
  EXPECT_FALSE(paired_difference({values.data(), 2}, Stopping::by_results).interval());
  // By others, of half the variance, it is known better: 4 and 3 degrees of freedom.
  const double variance = 5 * fixed.standard_error * fixed.standard_error;
  const Difference drawn = moderated(any, {variance / 2, 3});
  EXPECT_NEAR(drawn.standard_error, std::sqrt((4 * variance + 1.5 * variance) / 7 / 5), 1e-12);
  EXPECT_EQ(drawn.degrees_of_freedom, 7);
  EXPECT_NEAR(drawn.interval()->high,
              any.mean + anytime_quantile(5, 0.95, 7) * drawn.standard_error, 1e-12);
  EXPECT_LT(anytime_quantile(5, 0.95, 7), 0.85 * anytime_quantile(5, 0.95));
  EXPECT_NEAR(anytime_evidence(anytime_quantile(5, 0.95, 7), 5, 7), 20, 1e-9);
  EXPECT_EQ(moderated(any, {variance, 100}).degrees_of_freedom, 8) << "no more than its own";
  EXPECT_EQ(moderated(any, {}).standard_error, any.standard_error);
  // Of two means, each has half of the error rate and errors add up.
  const std::vector<double> others = {0.0, 0.01, -0.01, 0.02};
  const Difference two = independent_difference(values, others, Stopping::by_results);
  EXPECT_NEAR(two.standard_error, fixed.standard_error + paired_difference(others).standard_error,
              1e-12);
  EXPECT_NEAR(two.interval()->high - two.mean, anytime_quantile(4, 0.975) * two.standard_error,
              1e-12);
}

// A study of equal things, looked at after each of `most` values: whether it was ever wrong.
double ever_wrong(int studies, int most, const std::function<bool(const Difference&)>& is_wrong) {
  RandomSequence random(20261125, Stream::synthetic, 0);
  int wrong = 0;
  for (int study = 0; study < studies; ++study) {
    double mean = 0, squares = 0;
    bool was_wrong = false;
    for (int n = 1; n <= most; ++n) {
      const double value = random.normal(), before = mean;
      mean += (value - mean) / n;
      squares += (value - before) * (value - mean);
      if (n < 3 || was_wrong) continue;
      was_wrong = is_wrong(
          {mean, std::sqrt(squares / (n - 1) / n), n - 1.0, static_cast<std::size_t>(n), 1});
    }
    wrong += was_wrong;
  }
  return static_cast<double>(wrong) / studies;
}

TEST(Anytime, LookingAfterEveryValueKeepsTheErrorRate) {
  constexpr int kStudies = 10'000, kMost = 200;
  const double wrong = ever_wrong(kStudies, kMost, [](const Difference& d) {
    const auto interval = d.interval();
    const bool excludes = interval && (interval->low > 0 || interval->high < 0);
    EXPECT_EQ(excludes, d.p_value() < 0.05);
    return excludes;
  });
  EXPECT_LE(wrong, 0.05);
  EXPECT_GT(wrong, 0.01) << "it is no test that never rejects";
  // Student's interval, looked at as often: the reason for all this.
  const double student = ever_wrong(500, kMost, [](Difference d) {
    d.sequences = 0;
    return d.p_value() < 0.05;
  });
  EXPECT_GT(student, 0.25);
}

// Runs until the interval is as narrow as +-2 %, then asks whether it holds the truth.
TEST(Anytime, StoppingAtAPrecisionKeepsTheCoverage) {
  for (const double noise : {0.01, 0.03}) {
    RandomSequence random(20261125, Stream::synthetic, 1);
    int held = 0, student_held = 0;
    constexpr int kStudies = 2000;
    for (int study = 0; study < kStudies; ++study) {
      for (const bool anytime : {true, false}) {
        std::vector<double> values;
        while (true) {
          values.push_back(std::exp(noise * random.normal()));
          if (values.size() < 3) continue;
          const auto interval =
              geometric_mean(values, anytime ? Stopping::by_results : Stopping::fixed).interval;
          if (!interval || interval->high / interval->low > 1.04) continue;
          (anytime ? held : student_held) += interval->low < 1 && interval->high > 1;
          break;
        }
      }
    }
    EXPECT_GE(held, 0.95 * kStudies) << noise;
    EXPECT_LT(student_held, held) << noise;
  }
}

// The whole gate, looked at after every round: seven equal points, judged by judge() itself.
TEST(Anytime, AGateThatLooksAfterEveryRoundIsHardlyEverRed) {
  RandomSequence random(20261125, Stream::synthetic, 2);
  constexpr int kGates = 400, kPoints = 7, kMost = 20;
  GateOptions options;
  options.stopping = Stopping::by_results;
  options.thresholds[Quantity::time] = 0.0001;  // an effect of any size would be red
  int red = 0;
  for (int gate = 0; gate < kGates; ++gate) {
    Side baseline, current;
    for (Side* side : {&baseline, &current}) side->subjects.resize(kPoints);
    bool was_red = false;
    for (int round = 1; round <= kMost && !was_red; ++round) {
      for (int point = 0; point < kPoints; ++point) {
        for (Side* side : {&baseline, &current}) {
          Subject& subject = side->subjects[static_cast<std::size_t>(point)];
          subject.name = "point " + std::to_string(point);
          subject.samples[Quantity::time].push_back({std::exp(0.01 * random.normal()), "s", round});
          ++subject.runs;
        }
      }
      was_red = round >= 3 && judge(baseline, current, options).verdict() == Verdict::regression;
    }
    red += was_red;
  }
  EXPECT_LE(red, 0.05 * kGates);
}

}  // namespace
}  // namespace paceline
