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
              "other processes kept the CPUs busy in 3 of 3 runs of the new side only: are they "
              "its own?");
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
                         "gpus=2: 2 of 7 rounds left aside: other processes kept the CPUs busy"));
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
            "gpus=2: other processes kept the CPUs busy in 7 of 10 runs of the new side only: are "
            "they its own?");
}

TEST(GateLeftAside, ARunThatStandsOutHidesNothing) {
  const std::vector<double> before = {10, 10.1, 9.9, 10, 10.05};
  const Check slower = only_check(Quantity::time, before, {11, 11.1, 10.9, 17, 11.05});
  EXPECT_EQ(slower.verdict, Verdict::regression) << slower.reason;
  EXPECT_NEAR(*slower.change, 0.1, 0.005);
  EXPECT_EQ(slower.outlying_left_aside, 1U);
}

std::vector<double> rounds_of(int count, const std::vector<int>& hanging, double factor = 2) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const bool hangs = std::ranges::count(hanging, i) > 0;
    values.push_back((10 + 0.01 * (i % 5)) * (hangs ? factor : 1));
  }
  return values;
}

Judgement judge_old_and_new(const std::vector<double>& before, const std::vector<double>& now,
                            const GateOptions& options = {}) {
  return judge(side_with("old", Quantity::time, before, "s"),
               side_with("new", Quantity::time, now, "s"), options);
}

// What is left aside is weighed: by the side that it is of.
TEST(GateLeftAside, ABuildThatHangsNowAndThenDoesNotPass) {
  const Judgement hangs = judge_old_and_new(rounds_of(5, {}), rounds_of(5, {3}, 1.95));
  EXPECT_EQ(hangs.verdict(), Verdict::undecided);
  EXPECT_EQ(hangs.checks[0].reason,
            "1 of 5 runs of the new side took 1.95 times as long, none of the old: with them the "
            "mean is slower by 19.0 %, without them the change is +0.0 %; more rounds decide "
            "(--until-decided)");
  std::vector<double> faster = rounds_of(5, {3});
  for (double& seconds : faster) seconds *= 0.95;
  EXPECT_EQ(judge_old_and_new(rounds_of(5, {}), faster).verdict(), Verdict::undecided)
      << "faster in most runs, slower in the mean";
  const Judgement old_hung = judge_old_and_new(rounds_of(5, {3}), rounds_of(5, {}));
  EXPECT_EQ(old_hung.verdict(), Verdict::pass);
  EXPECT_TRUE(has_note(old_hung,
                       "gpus=2: 1 of 5 runs of the old side took 2.00 times as long, none of the "
                       "new; left aside (with them the mean changes by -16.7 %)"));
  const Judgement both = judge_old_and_new(rounds_of(12, {3}), rounds_of(12, {8}));
  EXPECT_EQ(both.verdict(), Verdict::pass);
  EXPECT_TRUE(
      has_note(both,
               "gpus=2: 1 of 12 runs of the new side took 2.00 times as long, 1 of the old took "
               "2.00 times as long; left aside (with them the mean changes by +0.0 %)"));
}

TEST(GateLeftAside, SignificantlyMoreRunsThatHangAreARegression) {
  const std::vector<int> hanging = {0, 4, 8, 12, 16, 20};
  const Check check =
      judge_old_and_new(rounds_of(24, {}), rounds_of(24, hanging, 1.5)).checks.at(0);
  EXPECT_EQ(check.verdict, Verdict::regression);
  expect_parts(check.reason,
               {"6 of 24 runs of the new side took 1.50 times as long, none of the old (p = 0.014)",
                "with them the mean is slower by 12.5 %"});
  EXPECT_EQ(
      judge_old_and_new(rounds_of(24, {2, 10, 18}, 1.5), rounds_of(24, {0, 8, 16}, 1.5)).verdict(),
      Verdict::pass)
      << "the old one hangs as often";
}

TEST(GateLeftAside, FreshRunsDoNotForgetThatOneHung) {
  Judgement first = judge_old_and_new(rounds_of(5, {}), rounds_of(5, {3}));
  settle(first, judge_old_and_new(rounds_of(5, {}), rounds_of(5, {})));
  EXPECT_EQ(first.verdict(), Verdict::undecided);
  expect_parts(first.checks[0].reason,
               {"in the first runs, 1 of 5 runs of the new side took 2.00 times as long",
                "; over first and fresh ones the mean is slower by 10.0 %"});
  Judgement once = judge_old_and_new(rounds_of(20, {}), rounds_of(20, {3}, 1.6));
  settle(once, judge_old_and_new(rounds_of(20, {}), rounds_of(20, {})));
  EXPECT_EQ(once.verdict(), Verdict::pass) << "1 of 40 by 60 % is 1.5 %";
}

TEST(GateLeftAside, ANightInWhichARunHungIsUndecided) {
  Side nights = side_with("baseline", Quantity::time, {10, 10.1, 9.9, 10, 10.05}, "n1");
  for (const char* night : {"n2", "n3"}) add_session(nights, night, {10, 10.1, 9.9, 10, 10.05});
  const Side tonight = side_with("current", Quantity::time, {10, 10.1, 9.9, 19, 10}, "today");
  const Check check = judge(nights, tonight, {}).checks.at(0);
  EXPECT_EQ(check.verdict, Verdict::undecided);
  expect_parts(check.reason,
               {"1 of 5 runs of the current side took 1.90 times as long, none of the "
                "baseline",
                "fresh runs of both sides decide"});
}

// A gate that goes on until it is decided passes once a tenth of the runs would have been seen.
TEST(GateLeftAside, APassUntilDecidedHasSeenEnoughRuns) {
  GateOptions looks;
  looks.stopping = Stopping::by_results;
  const Check early = judge_old_and_new(rounds_of(12, {}), rounds_of(12, {}), looks).checks.at(0);
  EXPECT_EQ(early.verdict, Verdict::undecided);
  expect_parts(early.reason, {"12 rounds can miss that 1 of 10 runs hangs; 29 rounds show it"});
  EXPECT_EQ(judge_old_and_new(rounds_of(29, {}), rounds_of(29, {}), looks).verdict(),
            Verdict::pass);
  const std::vector<double> once = rounds_of(39, {5}, 1.5);
  const Check open = judge_old_and_new(rounds_of(39, {}), once, looks).checks.at(0);
  EXPECT_EQ(open.verdict, Verdict::undecided);
  expect_parts(open.reason, {"1 of 39 runs of the new side took 1.50 times as long",
                             "39 rounds can miss that 1 of 10 runs hangs; 46 rounds show it"});
  EXPECT_EQ(judge_old_and_new(rounds_of(60, {}), rounds_of(60, {5}, 1.5), looks).verdict(),
            Verdict::pass);
  looks.most_rounds = 8;  // the last round of a shorter gate
  EXPECT_EQ(judge_old_and_new(rounds_of(8, {}), rounds_of(8, {}), looks).verdict(), Verdict::pass);
}

}  // namespace
}  // namespace paceline
