// How often the gate is red on simulated studies: of the same build, and of slower ones.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "analysis/gate/judge.h"

namespace paceline {
namespace {

// A machine on which runs vary by 1 %, rounds of a session by 1 %, and sessions by 2 %.
class SimulatedMachine {
 public:
  explicit SimulatedMachine(unsigned seed) : engine_(seed) {}

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

Judgement study(SimulatedMachine& machine, const Plan& plan) {
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
  settle(judgement, judge(fresh_baseline, fresh_current, find_suspects(judgement, options)));
  return judgement;
}

Outcomes outcomes(const Plan& plan) {
  SimulatedMachine machine(20261121);
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

}  // namespace
}  // namespace paceline
