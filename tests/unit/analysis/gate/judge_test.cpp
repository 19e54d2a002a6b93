#include "analysis/gate/judge.h"

#include <gtest/gtest.h>

#include "engine/core/error.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/made_sides.h"

namespace paceline {
namespace {

TEST(Gate, NeedsThreeRunsOfEach) {
  const Check check = only_check(Quantity::time, {10, 10}, {20, 20});
  EXPECT_EQ(check.verdict, Verdict::undecided);
  expect_parts(check.reason, {"at least 3"});
  EXPECT_EQ(only_check(Quantity::time, {10, 10.1, 9.9}, {20, 20.1, 19.9}).verdict,
            Verdict::regression);
}

TEST(Gate, ACertainSlowdownBelowTheThresholdIsReported) {
  const Check check = only_check(Quantity::time, {10, 10, 10}, {10.22, 10.2201, 10.2199});
  EXPECT_EQ(check.verdict, Verdict::pass);
  EXPECT_TRUE(check.is_worse_below_threshold);
  EXPECT_EQ(check.reason,
            "slower by 2.2 %, beyond the noise (p < 0.0001), below the threshold of 2.5 %");
  EXPECT_EQ(only_check(Quantity::time, {10, 10.1, 9.9}, {10.1, 10, 10}).reason, "");
  EXPECT_EQ(only_check(Quantity::time, {10.22, 10.2201, 10.2199}, {10, 10, 10}).reason, "");
}

// The interval of one check and the p of all of them are not said as if they were of one family.
TEST(Gate, OneCheckOfManyIsMarked) {
  Side before, now;
  for (int point = 0; point < 13; ++point) {
    Side one = side_with("old", Quantity::time, {10, 10.1, 9.9}, "s");
    one.subjects[0].name = "gpus=" + std::to_string(point + 1);
    before.subjects.push_back(one.subjects[0]);
    if (point == 0)
      one.subjects[0].samples[Quantity::time] = {{12, "s", 1}, {11.2, "s", 2}, {12.6, "s", 3}};
    now.subjects.push_back(one.subjects[0]);
  }
  before.name = "old";
  now.name = "new";
  // Each with a noise of its own, of which nothing is borrowed.
  GateOptions options;
  options.only = {{"gpus=1", Quantity::time}};
  const Check alone = judge(before, now, options).checks.at(0);
  EXPECT_EQ(alone.verdict, Verdict::regression);
  expect_parts(alone.reason, {"beyond the noise (p = 0.0"});
  const Check among = judge(before, now, {}).checks.at(0);
  EXPECT_EQ(among.verdict, Verdict::undecided);
  EXPECT_GT(among.interval->low, 0);
  expect_parts(among.reason,
               {"beyond the noise by itself (p = 0.0", "but not of 13 checks together (p = 0."});
}

TEST(Gate, NeedsAnEffectAndATest) {
  // Significant, but 2 %.
  EXPECT_EQ(only_check(Quantity::time, {10, 10, 10}, {10.2, 10.2001, 10.1999}).verdict,
            Verdict::pass);
  // 3.2 %, but one run of three is responsible.
  const Check noisy = only_check(Quantity::time, {10, 10, 10}, {10, 10, 11});
  EXPECT_EQ(noisy.verdict, Verdict::undecided);
  expect_parts(noisy.reason, {"within the noise", "rounds would decide"});
  // No effect, but so noisy that a large one could hide.
  const Check blind = only_check(Quantity::time, {10, 11, 9}, {9, 10, 11});
  EXPECT_EQ(blind.verdict, Verdict::undecided);
  expect_parts(blind.reason, {"too noisy"});
}

TEST(Gate, LooksAfterEveryRoundNeedMoreOfIt) {
  GateOptions looks;
  looks.stopping = Stopping::by_results;
  const std::vector<double> before = {10, 10.01, 9.99, 10}, now = {10.5, 10.51, 10.55, 10.45};
  const Check once = only_check(Quantity::time, before, now);
  const Check often = only_check(Quantity::time, before, now, looks);
  EXPECT_EQ(once.change, often.change);
  EXPECT_GT(often.p, once.p);
  ASSERT_TRUE(once.interval);
  EXPECT_FALSE(often.interval) << "of four rounds that may resemble their neighbours";
  // Three rounds with a clear change are enough for one look, not for many.
  const std::vector<double> clear = {10.5, 10.6, 10.4};
  EXPECT_EQ(only_check(Quantity::time, {10, 10, 10}, clear).verdict, Verdict::regression);
  const Check too_few = only_check(Quantity::time, {10, 10, 10}, clear, looks);
  EXPECT_EQ(too_few.verdict, Verdict::undecided);
  EXPECT_TRUE(too_few.more_rounds_help);
  // Rounds that go up and down slowly are no regression.
  const std::vector<double> wave = {10.9, 10.8, 10.75, 10.8, 10.7, 10.6, 10.65, 10.55};
  EXPECT_EQ(only_check(Quantity::time, std::vector<double>(8, 10.0), wave, looks).verdict,
            Verdict::undecided);
  // Two rounds have no interval at all; equal values decide with three.
  EXPECT_EQ(only_check(Quantity::loss, {1, 1, 1}, {1, 1, 1}, looks).verdict, Verdict::pass);
}

// Somebody may judge again what a gate left that stopped when it was decided.
TEST(Gate, SequentialRecordsAreJudgedAsSuch) {
  Side before = side_with("baseline", Quantity::time, {10, 10, 10}, "s");
  const Side now = side_with("current", Quantity::time, {10.5, 10.6, 10.4}, "s");
  EXPECT_EQ(judge(before, now, {}).verdict(), Verdict::regression);
  EXPECT_FALSE(judge(before, now, {}).is_sequential);
  before.subjects[0].sequential = true;
  EXPECT_EQ(judge(before, now, {}).verdict(), Verdict::undecided);
  EXPECT_TRUE(judge(before, now, {}).is_sequential);
}

TEST(Gate, ManyLooksAtFailuresNeedMoreOfThem) {
  Side before = side_with("baseline", Quantity::time, std::vector<double>(10, 10.0), "s");
  Side now = side_with("current", Quantity::time, std::vector<double>(5, 10.0), "s");
  now.subjects[0].lost = 5;
  GateOptions looks;
  looks.stopping = Stopping::by_results;
  EXPECT_EQ(judge(before, now, {}).verdict(), Verdict::regression);
  EXPECT_NE(judge(before, now, looks).verdict(), Verdict::regression);
}

TEST(Gate, ThresholdsAreThoseGiven) {
  GateOptions options;
  options.thresholds[Quantity::time] = 0.1;
  const std::vector<double> before = {10, 10.01, 9.99}, now = {10.5, 10.51, 10.49};
  EXPECT_EQ(only_check(Quantity::time, before, now).verdict, Verdict::regression);
  EXPECT_EQ(only_check(Quantity::time, before, now, options).verdict, Verdict::pass);
}

TEST(Gate, EachQuantityHasItsDirection) {
  EXPECT_EQ(only_check(Quantity::accuracy, {0.98, 0.981, 0.979}, {0.96, 0.961, 0.959}).verdict,
            Verdict::regression);
  EXPECT_EQ(only_check(Quantity::accuracy, {0.96, 0.961, 0.959}, {0.98, 0.981, 0.979}).verdict,
            Verdict::pass);
  EXPECT_EQ(only_check(Quantity::loss, {0.1, 0.1, 0.1}, {0.12, 0.12, 0.12}).verdict,
            Verdict::regression);
  EXPECT_EQ(only_check(Quantity::serial_fraction, {0.1, 0.1, 0.1}, {0.2, 0.2, 0.2}).verdict,
            Verdict::regression);
  EXPECT_EQ(only_check(Quantity::communication, {0.0, 0.0, 0.0}, {0.2, 0.21, 0.19}).verdict,
            Verdict::regression);
  EXPECT_EQ(only_check(Quantity::communication, {0.2, 0.2, 0.2}, {0.0, 0.0, 0.0}).verdict,
            Verdict::pass);
}

TEST(Gate, AnInjectedSpikeIsSuspectThenPasses) {
  Judgement first = judge(side_with("baseline", Quantity::time, {10, 10, 10}, "s"),
                          side_with("current", Quantity::time, {11, 11.01, 11}, "s"), {});
  ASSERT_EQ(first.verdict(), Verdict::regression);
  const GateOptions suspects = find_suspects(first, {});
  EXPECT_EQ(suspects.only.size(), 1U);
  Side again = side_with("baseline", Quantity::time, {10, 10, 10}, "t");
  again.subjects[0].busy = 1;
  again.subjects[0].busy_why = "a build";
  again.notes = {"one round is odd"};
  settle(first, judge(again, side_with("current", Quantity::time, {10, 10.01, 10}, "t"), suspects));
  EXPECT_EQ(first.verdict(), Verdict::pass);
  EXPECT_EQ(first.warnings.back(),
            "fresh runs: the machine was busy in 1 of 3 runs of the baseline, e.g. a build");
  EXPECT_EQ(first.notes.back(), "fresh runs: one round is odd");
  EXPECT_TRUE(first.checks[0].is_fresh);
  EXPECT_NEAR(*first.checks[0].first_change, 0.1, 1e-3);
}

TEST(Gate, APointThatNoLongerRuns) {
  const Side baseline = side_with("baseline", Quantity::time, {10, 10, 10}, "s");
  Side current = side_with("current", Quantity::time, {}, "s");
  current.subjects[0].runs = 0;
  current.subjects[0].not_ended = current.subjects[0].lost = 3;
  current.subjects[0].why = "rank 1 was killed";
  const Judgement failing = judge(baseline, current, {});
  EXPECT_EQ(failing.verdict(), Verdict::regression);
  expect_parts(failing.checks[0].reason, {"rank 1 was killed"});
  current.subjects[0].lost = 1;  // one run in three attempts
  EXPECT_EQ(judge(baseline, current, {}).verdict(), Verdict::undecided);
  current.subjects[0].lost = 0;  // preempted
  EXPECT_EQ(judge(baseline, current, {}).verdict(), Verdict::undecided);
  current.subjects[0].not_ended = 0;
  EXPECT_EQ(judge(baseline, current, {}).verdict(), Verdict::undecided);
}

// They ended, so nothing says that the point no longer runs.
TEST(Gate, RunsThatAreLeftOutAreNoFailures) {
  const Side baseline = side_with("baseline", Quantity::time, {10, 10, 10}, "s");
  Side current = side_with("current", Quantity::time, {}, "s");
  current.subjects[0].left_out = 5;
  current.subjects[0].not_ended = current.subjects[0].lost = 3;
  current.subjects[0].why = "signal 15";
  const Judgement judgement = judge(baseline, current, {});
  EXPECT_EQ(judgement.verdict(), Verdict::undecided);
  EXPECT_EQ(judgement.checks.at(0).reason,
            "no run of the current side counts: 5 left out (resumed, throttled, traced or "
            "skipped), 3 did not end well: signal 15");
}

// Whatever is looked at: runs that do not end well have no loss to compare.
TEST(Gate, APointThatNoLongerRunsIsReportedOfAnyQuantity) {
  const Side baseline = side_with("baseline", Quantity::loss, {0.1, 0.1, 0.1}, "s");
  Side current = side_with("current", Quantity::loss, {}, "s");
  current.subjects[0].runs = 0;
  current.subjects[0].not_ended = current.subjects[0].lost = 3;
  GateOptions options;
  options.quantities = {Quantity::loss};
  EXPECT_EQ(judge(baseline, current, options).verdict(), Verdict::regression);
}

TEST(Gate, MoreFailuresThanBeforeAreARegression) {
  const Side baseline = side_with("baseline", Quantity::time, std::vector<double>(10, 10.0), "s");
  Side current = side_with("current", Quantity::time, {10, 10, 10}, "s");
  const auto verdict = [&](std::size_t failed) {
    current.subjects[0].lost = failed;
    current.subjects[0].why = "segmentation fault";
    return judge(baseline, current, {});
  };
  EXPECT_EQ(verdict(0).verdict(), Verdict::pass);
  const Judgement one = verdict(1);  // of 4, none of 10: one in 3.5 by chance
  EXPECT_EQ(one.verdict(), Verdict::pass);
  EXPECT_EQ(one.notes.at(0), "current: 1 of 4 runs of gpus=2 did not end well: segmentation fault");
  const Judgement seven = verdict(7);
  EXPECT_EQ(seven.verdict(), Verdict::regression);
  expect_parts(seven.checks[0].reason, {"7 of 10 runs did not end well, of the baseline 0 of 10"});
}

TEST(Gate, AQuantityThatIsGoneIsUndecided) {
  Side baseline = side_with("baseline", Quantity::time, {10, 10, 10}, "s");
  baseline.subjects[0].samples[Quantity::accuracy] = {{0.9, "s", 1}, {0.9, "s", 2}, {0.9, "s", 3}};
  const Side current = side_with("current", Quantity::time, {10, 10, 10}, "s");
  const Judgement judgement = judge(baseline, current, {});
  ASSERT_EQ(judgement.checks.size(), 2U);
  EXPECT_EQ(judgement.checks[1].verdict, Verdict::undecided);
  expect_parts(judgement.checks[1].reason, {"do not have it"});
}

// A round that either side lost takes nothing from those that both have.
TEST(Gate, LostRunsLeaveTheOtherPairs) {
  Side baseline = side_with("baseline", Quantity::time, {10, 13, 10, 8, 10, 9}, "s");
  Side current = side_with("current", Quantity::time, {12, 15.6, 12, 9.6, 12, 10.8}, "s");
  std::erase_if(baseline.subjects[0].samples[Quantity::time],
                [](const Sample& sample) { return sample.round == 2; });
  std::erase_if(current.subjects[0].samples[Quantity::time],
                [](const Sample& sample) { return sample.round == 5; });
  const Judgement judgement = judge(baseline, current, {});
  EXPECT_EQ(judgement.checks.at(0).evidence, Replication::paired);
  EXPECT_EQ(judgement.verdict(), Verdict::regression);
}

// Nights of 5 s beside the session that both sides share: no mean of 5.2 s under a change of 0 %.
TEST(Gate, ValuesAreOfTheRunsThatTheChangeIsOf) {
  Side baseline = side_with("baseline", Quantity::time, {6, 6.06, 5.94}, "ab");
  const Side current = side_with("current", Quantity::time, {6, 6.06, 5.94}, "ab");
  EXPECT_TRUE(judge(baseline, current, {}).notes.empty());
  for (const char* night : {"n1", "n2", "n3", "n4"}) add_session(baseline, night, {5, 5, 5});
  const Judgement judgement = judge(baseline, current, {});
  const Check& check = judgement.checks.at(0);
  EXPECT_EQ(check.evidence, Replication::paired);
  EXPECT_DOUBLE_EQ(*check.baseline, *check.current);
  EXPECT_NEAR(*check.change, 0, 1e-12);
  EXPECT_EQ(check.baseline_runs, 3U);
  EXPECT_EQ(check.baseline_sessions, 1U);
  EXPECT_TRUE(has_note(judgement, "gpus=2: only runs of rounds that both sides have are compared"));
}

// However many runs each of them has.
TEST(Gate, MeansOfSessionsAreShownWhereSessionsAreCompared) {
  Side baseline = side_with("baseline", Quantity::time, {4, 4, 4, 4, 4, 4, 4}, "n1");
  add_session(baseline, "n2", {5});
  add_session(baseline, "n3", {6.25});
  const Check check =
      judge(baseline, side_with("current", Quantity::time, {5, 5, 5}, "today"), {}).checks.at(0);
  EXPECT_EQ(check.evidence, Replication::sessions);
  EXPECT_NEAR(*check.baseline, 5, 1e-12);
  EXPECT_NEAR(*check.current / *check.baseline - 1, *check.change, 1e-12);
}

// More runs of one session say nothing about the others.
TEST(Gate, SessionsShowWhatRunsCannot) {
  Side baseline = side_with("baseline", Quantity::time, {4.9, 4.9, 4.9}, "n1");
  add_session(baseline, "n2", {5, 5, 5});
  add_session(baseline, "n3", {5.1, 5.1, 5.1});
  for (const std::size_t runs : {5, 99}) {
    const Side current =
        side_with("current", Quantity::time, std::vector<double>(runs, 5.15), "today");
    const std::string reason = judge(baseline, current, {}).checks.at(0).reason;
    EXPECT_TRUE(
        reason.ends_with("; about 8 sessions of each side would decide, or fresh runs of "
                         "both (--rerun)"))
        << reason;
  }
  baseline.subjects[0].workload = kCommandWorkload;
  Side current = side_with("current", Quantity::time, {5.15, 5.15, 5.15}, "today");
  current.subjects[0].workload = kCommandWorkload;
  const std::string reason = judge(baseline, current, {}).checks.at(0).reason;
  EXPECT_TRUE(reason.ends_with("fresh runs of both in turns")) << reason;
}

TEST(Gate, SecondsAreNotComparedWithSecondsASample) {
  Side timed = side_with("baseline", Quantity::time, {5, 5.01, 4.99}, "a");
  Side rated = side_with("current", Quantity::time, {5e-5, 5.01e-5, 4.99e-5}, "a");
  rated.subjects[0].is_rated = true;
  rated.subjects[0].rated = rated.subjects[0].samples[Quantity::time];
  const auto check = [&] { return judge(timed, rated, {}).checks.at(0); };
  EXPECT_EQ(check().verdict, Verdict::undecided);
  EXPECT_EQ(check().reason, "neither fit seconds nor a rate is in all runs of both sides");
  EXPECT_FALSE(check().change);
  timed.subjects[0].rated = {{4e-5, "a", 1}, {4.01e-5, "a", 2}, {3.99e-5, "a", 3}};
  EXPECT_EQ(check().verdict, Verdict::regression);
  EXPECT_NEAR(*check().change, 0.25, 1e-3);
  EXPECT_TRUE(has_note(judge(timed, rated, {}),
                       "gpus=2: compared by samples/s, since not all runs have fit seconds"));
  rated.subjects[0].run_seconds = 8;
  EXPECT_EQ(check().run_seconds, 8);
}

TEST(Gate, RoundingMakesNoVerdict) {
  const double before = 0.9753, now = 0.9703;
  ASSERT_LT(before - now, 0.005) << "a change of the threshold, but for rounding";
  EXPECT_EQ(only_check(Quantity::accuracy, {before, before, before}, {now, now, now}).verdict,
            Verdict::regression);
  // 7.3 s on average, summed in another order.
  const Check alike =
      only_check(Quantity::time, {7.3, 7.3, 7.3}, {7.3, 7.3 * (1 + 1e-15), 7.3 * (1 + 1e-15)});
  EXPECT_EQ(alike.p, 1);
}

TEST(Gate, APointWithoutABaselineIsReported) {
  Side baseline = side_with("baseline", Quantity::time, {10, 10, 10}, "s"), current = baseline;
  baseline.subjects.push_back(baseline.subjects[0]);
  current.subjects.push_back(current.subjects[0]);
  for (Side* side : {&baseline, &current}) side->subjects[1].name = "gpus=4";
  baseline.subjects[1].runs = 0;
  EXPECT_TRUE(has_note(judge(baseline, current, {}),
                       "gpus=4 is not judged: no run of the baseline counts"));
}

TEST(Gate, UnlikeWorkIsNotCompared) {
  Side baseline = side_with("baseline", Quantity::time, {10, 10, 10}, "s");
  Side current = side_with("current", Quantity::time, {5, 5, 5}, "s");
  baseline.subjects[0].work = 120000;
  current.subjects[0].work = 60000;
  baseline.subjects[0].members.emplace_back().origin = {{"data", "mnist, hash a"}};
  current.subjects[0].members.emplace_back().origin = {{"data", "mnist, hash b"}};
  const Judgement judgement = judge(baseline, current, {});
  EXPECT_EQ(judgement.verdict(), Verdict::undecided);
  expect_parts(judgement.checks.at(0).reason, {"not the same work"});
  expect_parts(judgement.notes.at(0), {"different data"});
}

TEST(Gate, NoMoreRoundsForWhatTheyCannotDecide) {
  Side before = side_with("baseline", Quantity::time, {10, 10, 10}, "s");
  Side now = before;
  now.subjects[0].work = 1000;
  before.subjects[0].work = 2000;
  EXPECT_FALSE(judge(before, now, {}).checks.at(0).more_rounds_help);
}

TEST(Gate, NothingInCommonIsAnError) {
  Side current = side_with("current", Quantity::time, {10, 10, 10}, "s");
  Side baseline = current;
  baseline.subjects[0].runs = 0;
  baseline.subjects[0].samples.clear();
  EXPECT_THROW(judge(baseline, current, {}), Error);
}

TEST(Gate, UnlikeMachinesAreNamed) {
  Side a = side_with("baseline", Quantity::time, {1}, "s"), b = a;
  b.name = "current";
  a.machines = {"A CPU", "H100"};
  b.machines = {"A CPU", "H200"};
  const auto differences = unlike_machines(a, b);
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[0], "only the baseline ran on H100");
  EXPECT_EQ(differences[1], "only the current ran on H200");
  b.machines.clear();
  EXPECT_TRUE(unlike_machines(a, b).empty());
}

TEST(Gate, SharesOfOtherOptionsMeanTheSame) {
  const ShareBounds wide{.most = 10, .zero = true};
  for (const char* text : {"5%", " 5 %", "0.05"}) {
    EXPECT_DOUBLE_EQ(parse_threshold(text, "--within", "percentage", wide), 0.05) << text;
  }
  EXPECT_EQ(parse_threshold("0", "--within", "percentage", wide), 0);
  EXPECT_EQ(parse_threshold("900%", "--within", "percentage", wide), 9);
  for (const char* text : {"5", "1001%", "-1%", "x"}) {
    EXPECT_THROW(parse_threshold(text, "--within", "percentage", wide), Error) << text;
  }
}

TEST(Gate, QuantitiesHaveKeys) {
  EXPECT_EQ(parse_quantity("serial_fraction", "--only"), Quantity::serial_fraction);
  EXPECT_THROW(parse_quantity("tme", "--only"), Error);
}

TEST(Gate, ThresholdTexts) {
  EXPECT_DOUBLE_EQ(parse_threshold("2.5%", "--threshold"), 0.025);
  EXPECT_DOUBLE_EQ(parse_threshold("0.03", "--threshold"), 0.03);
  for (const char* text : {"", "%", "0", "-1", "nan", "2,5%", "5000%", "a", "5", "1"}) {
    EXPECT_THROW(parse_threshold(text, "--threshold"), Error) << text;
  }
}

}  // namespace
}  // namespace paceline
