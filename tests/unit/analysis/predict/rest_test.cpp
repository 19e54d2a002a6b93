#include <gtest/gtest.h>

#include "analysis/predict/replay_facts.h"

namespace paceline {
namespace {

TEST(ReplayResidual, IsAShareOfTheAllReducesWhereItGrowsWithThem) {
  const ReplayResidual rest =
      fit_residual({{0.112, 0.10, 0.06}, {0.136, 0.12, 0.08}, {0.158, 0.14, 0.09}});
  EXPECT_EQ(rest.fixed, 0);
  EXPECT_NEAR(rest.share_of_sums, 0.2, 1e-12);
  EXPECT_NEAR(rest.seconds(0.03), 0.006, 1e-12);  // what if half the bytes are sent
}

TEST(ReplayResidual, IsFixedWhereItStays) {
  const ReplayResidual rest =
      fit_residual({{0.112, 0.10, 0.03}, {0.131, 0.12, 0.06}, {0.153, 0.14, 0.09}});
  EXPECT_EQ(rest.share_of_sums, 0);
  EXPECT_NEAR(rest.seconds(0.5), 0.012, 1e-12);
}

TEST(ReplayResidual, MayBeNegative) {
  EXPECT_NEAR(fit_residual({{0.098, 0.10, 0.10}, {0.136, 0.14, 0.20}}).share_of_sums, -0.02, 1e-12);
}

TEST(ReplayResidual, OfOneSizeIsFixed) {
  EXPECT_NEAR(fit_residual({{0.11, 0.10, 0.05}}).fixed, 0.01, 1e-12);
  EXPECT_EQ(fit_residual({{0.11, 0.10, 0.05}}).share_of_sums, 0);
}

TEST(ReplayResidual, IsFixedWhereNothingIsSummed) {
  EXPECT_NEAR(fit_residual({{0.11, 0.10, 0}, {0.13, 0.11, 0}}).fixed, 0.015, 1e-12);
}

TEST(ReplayResidual, LeavesNoStepNegative) {
  EXPECT_NEAR((ReplayResidual{0.02, 0}.with_rest(0.1, 1)), 0.12, 1e-12);
  EXPECT_NEAR((ReplayResidual{-0.02, 0}.with_rest(0.1, 1)), 0.08, 1e-12);
  EXPECT_NEAR((ReplayResidual{0, -1}.with_rest(0.1, 1)), 0.01, 1e-12);
}

TEST(ReplayResidual, OfNoSizeIsNothing) {
  EXPECT_EQ(fit_residual({}).seconds(1), 0);
}

}  // namespace
}  // namespace paceline
