// Runs that a gate leaves aside: of a busy machine, or far longer than the others.
#include <gtest/gtest.h>

#include "analysis/gate/judge.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/made_sides.h"

namespace paceline {
namespace {

TEST(GateLeftAside, AMachineThatWasBusyOnOneSideDecidesNothing) {
  const Side quiet_before = side_with("old", Quantity::time, {10, 10.1, 9.9}, "s");
  Side now = side_with("new", Quantity::time, {20, 20.1, 19.9}, "s");
  make_busy(now, 3);
  for (const bool is_baseline : {false, true}) {
    const Judgement judgement =
        is_baseline ? judge(now, quiet_before, {}) : judge(quiet_before, now, {});
    EXPECT_EQ(judgement.verdict(), Verdict::undecided);
    ASSERT_EQ(judgement.warnings.size(), 2U);
    expect_parts(judgement.warnings[0], {"busy in 3 of 3 runs of the new, e.g. 18 %"});
    EXPECT_EQ(judgement.checks[0].reason,
              "others kept the CPUs busy in 3 of 3 runs of the new side only: its own processes or "
              "threads?");
    EXPECT_TRUE(judgement.checks[0].change);
  }
  Side before = quiet_before;
  make_busy(before, 3);  // of both sides: they stand side by side
  EXPECT_EQ(judge(before, now, {}).verdict(), Verdict::regression);
  now.subjects[0].samples = {{Quantity::accuracy, {{0.5, "s", 1}, {0.5, "s", 2}, {0.5, "s", 3}}}};
  before.subjects[0].samples = {
      {Quantity::accuracy, {{0.9, "s", 1}, {0.9, "s", 2}, {0.9, "s", 3}}}};
  make_busy(now, 3);
  EXPECT_EQ(judge(before, now, {}).verdict(), Verdict::regression);  // no machine learns less
}

// 4 of tonight's 5 runs were busy, and 5 quiet nights stand against them.
TEST(GateLeftAside, ABusyNightConvictsNobody) {
  Side nights = side_with("baseline", Quantity::time, {10, 10.1, 9.9}, "n1");
  for (const char* night : {"n2", "n3", "n4", "n5"}) add_session(nights, night, {10, 10.1, 9.9});
  Side tonight = side_with("current", Quantity::time, {14, 14.1, 13.9, 14, 10}, "today");
  EXPECT_EQ(judge(nights, tonight, {}).verdict(), Verdict::regression);
  make_busy(tonight, 4);
  const Judgement judgement = judge(nights, tonight, {});
  EXPECT_EQ(judgement.verdict(), Verdict::undecided);
  EXPECT_EQ(judgement.checks[0].reason,
            "the machine was busy in 4 of 5 runs of the current side and in 0 of 15 runs of the "
            "baseline side, and too few quiet runs are left: at least 3 of each decide");
}

TEST(GateLeftAside, QuietRunsAreComparedWhereThereAreEnough) {
  const Side before = side_with("old", Quantity::time, {10, 10.1, 9.9, 10, 10.1, 9.9, 10}, "s");
  for (const double slower : {1.0, 1.1}) {
    Side now = side_with(
        "new", Quantity::time,
        {15, 16, 10 * slower, 10 * slower, 10.1 * slower, 9.9 * slower, 10 * slower}, "s");
    make_busy(now, 2);
    const Judgement judgement = judge(before, now, {});
    EXPECT_EQ(judgement.verdict(), slower > 1 ? Verdict::regression : Verdict::pass);
    EXPECT_EQ(judgement.checks[0].current_runs, 5U);
    EXPECT_EQ(judgement.checks[0].busy_left_aside, 4U) << "with those of the other side";
    EXPECT_TRUE(has_note(judgement,
                         "gpus=2: 2 of 7 rounds left aside, in which others kept the CPUs busy"));
  }
}

// Quiet rounds may convict a build that keeps its own machine busy, and do not acquit it.
TEST(GateLeftAside, BusinessOfOneSideOfManyRoundsIsReported) {
  const std::vector<double> ten(10, 10.0), other = {15, 15, 15, 15, 15, 15, 15, 10, 10, 10};
  const Side before = side_with("old", Quantity::time, ten, "s");
  Side now = side_with("new", Quantity::time, other, "s");
  make_busy(now, 7);
  const Judgement judgement = judge(before, now, {});
  EXPECT_EQ(judgement.verdict(), Verdict::undecided);
  EXPECT_FALSE(judgement.checks[0].more_rounds_help);
  EXPECT_EQ(judgement.warnings.back(),
            "gpus=2: others kept the CPUs busy in 7 of 10 runs of the new side only: its own "
            "processes or threads?");
}

TEST(GateLeftAside, ARunThatStandsOutHidesNothing) {
  const std::vector<double> before = {10, 10.1, 9.9, 10, 10.05};
  const Check slower = only_check(Quantity::time, before, {11, 11.1, 10.9, 17, 11.05});
  EXPECT_EQ(slower.verdict, Verdict::regression) << slower.reason;
  EXPECT_NEAR(*slower.change, 0.1, 0.005);
  EXPECT_EQ(slower.outlying_left_aside, 1U);
  const Judgement equal =
      judge(side_with("old", Quantity::time, before, "s"),
            side_with("new", Quantity::time, {10, 10.1, 9.9, 16, 10.05}, "s"), {});
  EXPECT_EQ(equal.verdict(), Verdict::pass);
  EXPECT_TRUE(has_note(equal,
                       "gpus=2: 1 of 5 rounds left aside, whose difference stands out of the "
                       "others' (by a factor of 1.60 at most)"));
}

// If the new build's runs are long now and then, that is no accident of the machine.
TEST(GateLeftAside, MoreRunsThatStandOutAreNoPass) {
  std::vector<double> before, now;
  for (int i = 0; i < 24; ++i) {
    before.push_back(10 + 0.01 * (i % 5));
    now.push_back((10 + 0.01 * (i % 3)) * (i % 4 == 0 ? 1.5 : 1));
  }
  const Check check = only_check(Quantity::time, before, now);
  EXPECT_EQ(check.verdict, Verdict::undecided);
  expect_parts(check.reason, {"6 of 24 runs stand out of the others, of the baseline 0 of 24"});
}

}  // namespace
}  // namespace paceline
