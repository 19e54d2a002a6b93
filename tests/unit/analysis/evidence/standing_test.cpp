// Which rows may stand beside which.
#include "analysis/evidence/standing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace paceline {
namespace {

using Answer = Standing::Answer;
using Values = std::vector<double>;

EvidencePoint point_with(const Values& accuracies, const Values& losses = {}) {
  EvidencePoint point;
  for (std::size_t i = 0; i < std::max(accuracies.size(), losses.size()); ++i) {
    QualityFacts& quality = own_record(point.runs.emplace_back()).quality;
    if (i < accuracies.size()) quality.test_accuracy = accuracies[i];
    if (i < losses.size()) quality.epochs.emplace_back().train_loss = losses[i];
  }
  return point;
}

Standing beside(const Values& base, const Values& row) {
  return stands_beside(point_with(base), point_with(row));
}

Standing losses_beside(const Values& base, const Values& row) {
  return stands_beside(point_with({}, base), point_with({}, row));
}

TEST(Standing, OfFewRunsTheMeansDecide) {
  EXPECT_EQ(beside({0.754}, {0.750}).answer, Answer::yes);
  EXPECT_EQ(beside({0.642}, {0.754}).answer, Answer::yes) << "better";
  EXPECT_EQ(beside({}, {0.1}).answer, Answer::yes) << "not known";
  const Standing worse = beside({0.754}, {0.642});
  EXPECT_EQ(worse.answer, Answer::no);
  EXPECT_EQ(worse.label, "lower accuracy");
  EXPECT_EQ(worse.values, "64.20 % beside 75.40 %");
}

TEST(Standing, AnOpenIntervalIsNotEquality) {
  EXPECT_EQ(beside({0.90, 0.91, 0.90}, {0.88, 0.87, 0.88}).answer, Answer::no);
  EXPECT_EQ(beside({0.970, 0.971, 0.969}, {0.969, 0.970, 0.970}).answer, Answer::yes);
  const Standing open = beside({0.956, 0.969, 0.961}, {0.957, 0.956, 0.945});
  EXPECT_EQ(open.answer, Answer::cannot_tell);
  EXPECT_FALSE(open.is_barred());
  EXPECT_EQ(open.label, "accuracy unclear");
  EXPECT_EQ(open.doubt(),
            "cannot tell whether it trained as well: 94.5, 95.6, 95.7 % beside 95.6, 96.1, 96.9 %");
}

TEST(Standing, SomeRunsFarBelowTheOthersBarARow) {
  const Values good = {0.970, 0.969, 0.971, 0.970, 0.972, 0.970};
  const Values diverged = {0.970, 0.1, 0.969, 0.971, 0.1, 0.970};
  const Standing standing = beside(good, diverged);
  EXPECT_EQ(standing.answer, Answer::cannot_tell);
  EXPECT_TRUE(standing.is_barred());
  EXPECT_EQ(standing.label, "far lower accuracy in 2 of 6 runs");
  EXPECT_EQ(standing.values,
            "10.0, 10.0, 96.9, 97.0, 97.0, 97.1 % beside 96.9, 97.0, 97.0, 97.0, 97.1, 97.2 %");
  EXPECT_EQ(beside(diverged, good).answer, Answer::yes) << "each run is as good as the best";
  EXPECT_FALSE(beside(diverged, diverged).is_barred()) << "both do";
  EXPECT_EQ(beside(good, {0.1, 0.1, 0.1}).answer, Answer::no) << "all do";
}

TEST(Standing, WithoutAccuraciesLossesAreCompared) {
  const Values base = {0.100, 0.101, 0.099};
  EXPECT_EQ(losses_beside(base, {0.2, 0.21, 0.2}).label, "higher loss");
  EXPECT_EQ(losses_beside(base, {0.101, 0.100, 0.101}).answer, Answer::yes);
  EXPECT_EQ(losses_beside(base, {0.112, 0.095, 0.107}).label, "loss unclear");
  EXPECT_EQ(losses_beside(base, {0.11}).answer, Answer::yes) << "one run";
  EXPECT_EQ(losses_beside(base, {0.1, 2.3, 0.1}).label, "far higher loss in 1 of 3 runs");
  EXPECT_EQ(losses_beside(base, {0.1, std::nan(""), 0.1}).values,
            "nan, 0.1, 0.1 beside 0.101, 0.1, 0.099");
  EXPECT_EQ(losses_beside({0.1}, {std::nan("")}).answer, Answer::no);
  EvidencePoint survivors = point_with({0.97, 0.97}, {0.1, 0.1, std::nan("")});
  EXPECT_EQ(stands_beside(point_with({0.97, 0.97, 0.97}), survivors).values,
            "nan, 97.0, 97.0 % beside 97.0, 97.0, 97.0 %");
  EvidencePoint synthetic = point_with({}, {0.2, 0.21, 0.2});
  for (auto& run : synthetic.runs) own_record(run).flags.synthetic = true;
  EXPECT_EQ(stands_beside(point_with({}, base), synthetic).answer, Answer::yes);
}

TEST(Standing, ATimeToAGoalNeedsNoOther) {
  EvidencePoint base = point_with({0.9}), row = point_with({0.8});
  for (EvidencePoint* each : {&base, &row}) each->runs.front().goal = "test_accuracy>=0.8";
  EXPECT_EQ(stands_beside(base, row).answer, Answer::yes);
}

TEST(Standing, AllStandBesideTheOneThatTrainedBest) {
  const auto together = [](const std::vector<EvidencePoint>& points) {
    std::vector<const EvidencePoint*> pointers;
    for (const EvidencePoint& point : points) pointers.push_back(&point);
    return stand_together(pointers);
  };
  const auto of_five = together({point_with({0.90, 0.899, 0.901}),
                                 point_with({0.970, 0.969, 0.971}), point_with({0.971, 0.1, 0.970}),
                                 point_with({0.9695, 0.97, 0.969}), point_with({})});
  EXPECT_EQ(of_five[0].answer, Answer::no);
  EXPECT_EQ(of_five[1].answer, Answer::yes) << "the best";
  EXPECT_TRUE(of_five[2].has_far_runs);
  EXPECT_EQ(of_five[3].answer, Answer::yes);
  EXPECT_EQ(of_five[4].answer, Answer::yes) << "not known";
  const auto of_one_run = together({point_with({0.965}), point_with({0.972}), point_with({0.90})});
  EXPECT_EQ(of_one_run[0].answer, Answer::cannot_tell)
      << "one run each, and one of three was chosen";
  EXPECT_EQ(of_one_run[2].answer, Answer::no);
}

// Shares of answers about four rows of five runs, of which the last is worse by `lower`.
struct Shares {
  double barred = 0, yes = 0;  // studies with any such row; rows
};

Shares simulate(double noise, double lower) {
  constexpr int kStudies = 500, kRows = 4, kRuns = 5;
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0, noise);
  Shares shares;
  for (int study = 0; study < kStudies; ++study) {
    std::vector<EvidencePoint> points;
    for (int row = 0; row <= kRows; ++row) {
      Values accuracies(kRuns);
      for (double& each : accuracies) each = 0.9 + normal(random) - (row == kRows ? lower : 0);
      points.push_back(point_with(accuracies));
    }
    bool any = false;
    for (int row = 1; row <= kRows; ++row) {
      const Standing standing =
          stands_beside(points[0], points[static_cast<std::size_t>(row)], kRows);
      any = any || standing.is_barred();
      shares.yes += standing.answer == Answer::yes ? 1.0 / kRows / kStudies : 0;
    }
    shares.barred += any ? 1.0 / kStudies : 0;
  }
  return shares;
}

TEST(Standing, ErrsSeldomAndSeesWhatIsPlain) {
  for (const double noise : {0.001, 0.003, 0.006, 0.02}) {
    EXPECT_LE(simulate(noise, 0).barred, 0.05) << noise;
  }
  EXPECT_GE(simulate(0.0015, 0).yes, 0.95);
  EXPECT_GE(simulate(0.003, 0).yes, 0.5);
  EXPECT_GE(simulate(0.003, 0.015).barred, 0.95);
  EXPECT_GE(simulate(0.0005, 0.007).barred, 0.95);
}

}  // namespace
}  // namespace paceline
