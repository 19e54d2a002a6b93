#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "analysis/gate/judge.h"
#include "engine/core/error.h"

namespace paceline {
namespace {

// A machine on which runs vary by 1 %, rounds of a session by 1 %, and sessions by 2 %.
class Machine {
 public:
  explicit Machine(unsigned seed) : engine_(seed) {}

  // `rounds` runs of each point on each side, side by side in one session. `factor` is the true
  // time of a point of the current side over that of the baseline.
  // Points that are as quiet or as noisy as this says, instead of 1 %.
  std::function<double(int point)> noise = [](int) { return 0.01; };

  void session(const std::string& name, int points, int rounds,
               const std::function<double(int point)>& factor, Side* baseline, Side* current) {
    const double effect = 0.02 * normal_(engine_);
    for (int round = 1; round <= rounds; ++round) {
      const double drift = effect + 0.01 * normal_(engine_);
      for (int point = 0; point < points; ++point) {
        if (baseline) add(*baseline, point, name, round, drift);
        if (current) add(*current, point, name, round, drift + std::log(factor(point)));
      }
    }
  }

 private:
  void add(Side& side, int point, const std::string& session, int round, double log_time) {
    while (side.subjects.size() <= static_cast<std::size_t>(point)) {
      side.subjects.emplace_back();
      side.subjects.back().name = "point " + std::to_string(side.subjects.size());
    }
    Subject& subject = side.subjects[static_cast<std::size_t>(point)];
    subject.samples[Quantity::time].push_back(
        {(10 + point) * std::exp(log_time + noise(point) * normal_(engine_)), session, round});
    ++subject.runs;
  }

  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

double unchanged(int) {
  return 1;
}

// The first point is slower by 5 %.
double one_slower(int point) {
  return point == 0 ? 1.05 : 1;
}

struct Outcomes {
  int regression = 0, undecided = 0, pass = 0, of = 0;
  double red() const { return static_cast<double>(regression) / of; }
  double passed() const { return static_cast<double>(pass) / of; }
};

struct Plan {
  int points = 1;
  int baseline_sessions = 0;  // 0: both sides interleaved from the start, as --ab does
  std::function<double(int)> factor = unchanged;
  int studies = 1000;
  bool rerun = true;
  std::function<double(int)> noise = {};
};

Judgement study(Machine& machine, const Plan& plan) {
  constexpr int kRounds = 5;
  Side baseline, current;
  if (plan.baseline_sessions == 0) {
    machine.session("first", plan.points, kRounds, plan.factor, &baseline, &current);
  }
  for (int session = 1; session <= plan.baseline_sessions; ++session) {
    machine.session("stored " + std::to_string(session), plan.points, kRounds, unchanged, &baseline,
                    nullptr);
  }
  if (plan.baseline_sessions > 0) {
    machine.session("today", plan.points, kRounds, plan.factor, nullptr, &current);
  }
  const GateOptions options;
  Judgement judgement = judge(baseline, current, options);
  if (judgement.verdict() == Verdict::pass || !plan.rerun) return judgement;
  Side fresh_baseline, fresh_current;
  machine.session("fresh", plan.points, kRounds, plan.factor, &fresh_baseline, &fresh_current);
  settle(judgement, judge(fresh_baseline, fresh_current, suspects_of(judgement, options)));
  return judgement;
}

Outcomes outcomes(const Plan& plan) {
  Machine machine(20261121);
  if (plan.noise) machine.noise = plan.noise;
  Outcomes result;
  for (result.of = 0; result.of < plan.studies; ++result.of) {
    const Verdict verdict = study(machine, plan).verdict();
    result.regression += verdict == Verdict::regression;
    result.undecided += verdict == Verdict::undecided;
    result.pass += verdict == Verdict::pass;
  }
  return result;
}

TEST(GateSimulation, TheSameBuildIsHardlyEverRed) {
  for (const int sessions : {0, 1, 3}) {
    for (const int points : {1, 14}) {
      const Outcomes found = outcomes({.points = points, .baseline_sessions = sessions});
      EXPECT_LT(found.red(), 0.01) << points << " points, " << sessions << " sessions";
      EXPECT_GT(found.passed(), 0.95) << points << " points, " << sessions << " sessions";
    }
  }
  EXPECT_LT(outcomes({.points = 60, .baseline_sessions = 1, .studies = 300}).red(), 0.01);
}

TEST(GateSimulation, FivePercentAreFoundAmongFourteenPoints) {
  for (const int sessions : {0, 1, 3}) {
    for (const int points : {1, 2, 5, 14}) {
      const Outcomes found = outcomes(
          {.points = points, .baseline_sessions = sessions, .factor = one_slower, .studies = 500});
      EXPECT_GT(found.red(), 0.95) << points << " points, " << sessions << " sessions";
    }
  }
}

TEST(GateSimulation, TenPercentAreFoundAmongSixtyPoints) {
  const auto slower = [](int point) { return point == 37 ? 1.1 : 1.0; };
  for (const int sessions : {0, 1, 3}) {
    EXPECT_GT(
        outcomes({.points = 60, .baseline_sessions = sessions, .factor = slower, .studies = 100})
            .red(),
        0.99);
  }
}

// What is borrowed from other points about the noise must not make a noisy one look quiet.
TEST(GateSimulation, UnlikeNoiseMakesNoFalseAlarms) {
  const auto noise = [](int point) { return point % 2 == 0 ? 0.002 : 0.04; };
  // With runs that vary by 4 % chance alone makes 2.5 %, and the test's own 5 % are what is left.
  EXPECT_LT(outcomes({.points = 14, .studies = 300, .noise = noise}).red(), 0.05);
  EXPECT_LT(outcomes({.points = 14, .baseline_sessions = 1, .studies = 300, .noise = noise}).red(),
            0.05);
}

// Why sessions are the unit of replication: runs of one session against those of another would call
// one build in three a regression.
TEST(GateSimulation, StoredRunsOfFewSessionsNeverDecide) {
  for (const int sessions : {1, 2}) {
    const Outcomes found =
        outcomes({.points = 14, .baseline_sessions = sessions, .studies = 200, .rerun = false});
    EXPECT_EQ(found.undecided, found.of) << sessions;
  }
  const Outcomes decided =
      outcomes({.points = 1, .baseline_sessions = 8, .studies = 1000, .rerun = false});
  EXPECT_LT(decided.red(), 0.05);
  EXPECT_GT(decided.passed(), 0.3);  // against sessions that vary by 2 %, one of today says little
}

TEST(GateSimulation, FasterIsNoRegression) {
  const auto faster = [](int) { return 0.8; };
  EXPECT_EQ(outcomes({.points = 5, .factor = faster, .studies = 100}).pass, 100);
}

// Sides with one point and equal values but for what a test sets.
Side side_with(const std::string& name, Quantity quantity, const std::vector<double>& values,
               const std::string& session) {
  Side side;
  side.name = name;
  side.subjects.emplace_back();
  Subject& subject = side.subjects.back();
  subject.name = "gpus=2";
  subject.runs = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    subject.samples[quantity].push_back({values[i], session, static_cast<int>(i) + 1});
  }
  return side;
}

Check only_check(Quantity quantity, const std::vector<double>& before,
                 const std::vector<double>& now, const GateOptions& options = {}) {
  const Judgement judgement = judge(side_with("baseline", quantity, before, "s"),
                                    side_with("current", quantity, now, "s"), options);
  EXPECT_EQ(judgement.checks.size(), 1U);
  return judgement.checks.at(0);
}

TEST(Gate, NeedsThreeRunsOfEach) {
  const Check check = only_check(Quantity::time, {10, 10}, {20, 20});
  EXPECT_EQ(check.verdict, Verdict::undecided);
  EXPECT_NE(check.reason.find("at least 3"), std::string::npos) << check.reason;
  EXPECT_EQ(only_check(Quantity::time, {10, 10.1, 9.9}, {20, 20.1, 19.9}).verdict,
            Verdict::regression);
}

TEST(Gate, AMachineThatWasBusyOnOneSideDecidesNothing) {
  Side before = side_with("baseline", Quantity::time, {10, 10.1, 9.9}, "s");
  Side now = side_with("current", Quantity::time, {20, 20.1, 19.9}, "s");
  now.subjects[0].busy = 3;
  now.subjects[0].busy_why = "18 % of the time of its CPUs went to other processes";
  for (const auto& [baseline, current] : {std::pair(&before, &now), std::pair(&now, &before)}) {
    const Judgement judgement = judge(*baseline, *current, {});
    EXPECT_EQ(judgement.verdict(), Verdict::undecided);
    ASSERT_EQ(judgement.warnings.size(), 1U);
    EXPECT_NE(judgement.warnings[0].find("busy in 3 of 3 runs of the current, e.g. 18 %"),
              std::string::npos);
    EXPECT_NE(judgement.checks[0].reason.find("the machine was busy in all runs of the"),
              std::string::npos);
    EXPECT_TRUE(judgement.checks[0].change);
  }
  before.subjects[0].busy = 3;  // of both sides: they stand side by side
  EXPECT_EQ(judge(before, now, {}).verdict(), Verdict::regression);
  now.subjects[0].samples = {{Quantity::accuracy, {{0.5, "s", 1}, {0.5, "s", 2}, {0.5, "s", 3}}}};
  before.subjects[0].samples = {
      {Quantity::accuracy, {{0.9, "s", 1}, {0.9, "s", 2}, {0.9, "s", 3}}}};
  before.subjects[0].busy = 0;
  EXPECT_EQ(judge(before, now, {}).verdict(), Verdict::regression);  // no machine learns less
}

TEST(Gate, NeedsAnEffectAndATest) {
  // Significant, but 2 %.
  EXPECT_EQ(only_check(Quantity::time, {10, 10, 10}, {10.2, 10.2001, 10.1999}).verdict,
            Verdict::pass);
  // 3.2 %, but one run of three is responsible.
  const Check noisy = only_check(Quantity::time, {10, 10, 10}, {10, 10, 11});
  EXPECT_EQ(noisy.verdict, Verdict::undecided);
  EXPECT_NE(noisy.reason.find("within the noise"), std::string::npos) << noisy.reason;
  EXPECT_NE(noisy.reason.find("rounds would tell"), std::string::npos) << noisy.reason;
  // No effect, but so noisy that a large one could hide.
  const Check blind = only_check(Quantity::time, {10, 11, 9}, {9, 10, 11});
  EXPECT_EQ(blind.verdict, Verdict::undecided);
  EXPECT_NE(blind.reason.find("too noisy"), std::string::npos) << blind.reason;
}

TEST(Gate, LooksAfterEveryRoundNeedMoreOfIt) {
  GateOptions looks;
  looks.stopping = Stopping::by_results;
  const std::vector<double> before = {10, 10.01, 9.99, 10}, now = {10.5, 10.51, 10.55, 10.45};
  const Check once = only_check(Quantity::time, before, now);
  const Check often = only_check(Quantity::time, before, now, looks);
  EXPECT_EQ(once.change, often.change);
  EXPECT_GT(often.p, once.p);
  EXPECT_LT(often.interval->low, once.interval->low);
  // Three rounds with a clear change are enough for one look, not for many.
  const std::vector<double> clear = {10.5, 10.6, 10.4};
  EXPECT_EQ(only_check(Quantity::time, {10, 10, 10}, clear).verdict, Verdict::regression);
  const Check too_few = only_check(Quantity::time, {10, 10, 10}, clear, looks);
  EXPECT_EQ(too_few.verdict, Verdict::undecided);
  EXPECT_TRUE(too_few.more_rounds_help);
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
  const GateOptions suspects = suspects_of(first, {});
  EXPECT_EQ(suspects.only.size(), 1U);
  settle(first, judge(side_with("baseline", Quantity::time, {10, 10, 10}, "t"),
                      side_with("current", Quantity::time, {10, 10.01, 10}, "t"), suspects));
  EXPECT_EQ(first.verdict(), Verdict::pass);
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
  EXPECT_NE(failing.checks[0].reason.find("rank 1 was killed"), std::string::npos);
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
            "no run of it on the current side counts: 5 left out (resumed, throttled, traced or "
            "skipped), 3 did not end well: signal 15");
}

// Whatever is looked at: runs that do not end well have no loss to compare.
TEST(Gate, APointThatNoLongerRunsIsToldOfAnyQuantity) {
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
  EXPECT_NE(seven.checks[0].reason.find("7 of 10 runs did not end well, of the baseline 0 of 10"),
            std::string::npos)
      << seven.checks[0].reason;
}

TEST(Gate, AQuantityThatIsGoneIsUndecided) {
  Side baseline = side_with("baseline", Quantity::time, {10, 10, 10}, "s");
  baseline.subjects[0].samples[Quantity::accuracy] = {{0.9, "s", 1}, {0.9, "s", 2}, {0.9, "s", 3}};
  const Side current = side_with("current", Quantity::time, {10, 10, 10}, "s");
  const Judgement judgement = judge(baseline, current, {});
  ASSERT_EQ(judgement.checks.size(), 2U);
  EXPECT_EQ(judgement.checks[1].verdict, Verdict::undecided);
  EXPECT_NE(judgement.checks[1].reason.find("do not have it"), std::string::npos);
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
  EXPECT_EQ(judgement.checks.at(0).evidence, Evidence::paired);
  EXPECT_EQ(judgement.verdict(), Verdict::regression);
}

bool has_note(const Judgement& judgement, const std::string& note) {
  return std::find(judgement.notes.begin(), judgement.notes.end(), note) != judgement.notes.end();
}

void add_session(Side& side, const std::string& session, const std::vector<double>& seconds) {
  Subject& subject = side.subjects.at(0);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    subject.samples[Quantity::time].push_back({seconds[i], session, static_cast<int>(i) + 1});
  }
  subject.runs += seconds.size();
}

// Nights of 5 s beside the session that both sides share: no mean of 5.2 s under a change of 0 %.
TEST(Gate, ValuesAreOfTheRunsThatTheChangeIsOf) {
  Side baseline = side_with("baseline", Quantity::time, {6, 6.06, 5.94}, "ab");
  const Side current = side_with("current", Quantity::time, {6, 6.06, 5.94}, "ab");
  EXPECT_TRUE(judge(baseline, current, {}).notes.empty());
  for (const char* night : {"n1", "n2", "n3", "n4"}) add_session(baseline, night, {5, 5, 5});
  const Judgement judgement = judge(baseline, current, {});
  const Check& check = judgement.checks.at(0);
  EXPECT_EQ(check.evidence, Evidence::paired);
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
  EXPECT_EQ(check.evidence, Evidence::sessions);
  EXPECT_NEAR(*check.baseline, 5, 1e-12);
  EXPECT_NEAR(*check.current / *check.baseline - 1, *check.change, 1e-12);
}

// More runs of one session say nothing about the others.
TEST(Gate, SessionsTellWhatRunsCannot) {
  Side baseline = side_with("baseline", Quantity::time, {4.9, 4.9, 4.9}, "n1");
  add_session(baseline, "n2", {5, 5, 5});
  add_session(baseline, "n3", {5.1, 5.1, 5.1});
  for (const std::size_t runs : {5, 99}) {
    const Side current =
        side_with("current", Quantity::time, std::vector<double>(runs, 5.15), "today");
    const std::string reason = judge(baseline, current, {}).checks.at(0).reason;
    EXPECT_TRUE(
        reason.ends_with("; about 8 sessions of each side would tell, or fresh runs of "
                         "both (--rerun)"))
        << reason;
  }
}

TEST(Gate, SecondsAreNotComparedWithSecondsASample) {
  Side timed = side_with("baseline", Quantity::time, {5, 5.01, 4.99}, "a");
  Side rated = side_with("current", Quantity::time, {5e-5, 5.01e-5, 4.99e-5}, "a");
  rated.subjects[0].is_rated = true;
  rated.subjects[0].rated = rated.subjects[0].samples[Quantity::time];
  const auto check = [&] { return judge(timed, rated, {}).checks.at(0); };
  EXPECT_EQ(check().verdict, Verdict::undecided);
  EXPECT_EQ(check().reason, "not all runs of both sides have fit seconds, nor all a rate");
  EXPECT_FALSE(check().change);
  timed.subjects[0].rated = {{4e-5, "a", 1}, {4.01e-5, "a", 2}, {3.99e-5, "a", 3}};
  EXPECT_EQ(check().verdict, Verdict::regression);
  EXPECT_NEAR(*check().change, 0.25, 1e-3);
  EXPECT_TRUE(has_note(judge(timed, rated, {}),
                       "gpus=2: time is seconds a sample, since not all runs have fit seconds"));
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

TEST(Gate, APointWithoutABaselineIsSaid) {
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
  baseline.subjects[0].data = {"mnist, hash a"};
  current.subjects[0].data = {"mnist, hash b"};
  const Judgement judgement = judge(baseline, current, {});
  EXPECT_EQ(judgement.verdict(), Verdict::undecided);
  EXPECT_NE(judgement.checks.at(0).reason.find("not the same work"), std::string::npos);
  EXPECT_NE(judgement.notes.at(0).find("different data"), std::string::npos);
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

TEST(Gate, ThresholdTexts) {
  EXPECT_DOUBLE_EQ(parse_threshold("2.5%", "--threshold"), 0.025);
  EXPECT_DOUBLE_EQ(parse_threshold("0.03", "--threshold"), 0.03);
  for (const char* text : {"", "%", "0", "-1", "nan", "2,5%", "5000%", "a", "5", "1"}) {
    EXPECT_THROW(parse_threshold(text, "--threshold"), Error) << text;
  }
}

}  // namespace
}  // namespace paceline
