#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/gate/judge.h"
#include "analysis/plan/design.h"
#include "engine/core/error.h"
#include "engine/core/random.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

struct Simulated {
  std::size_t points = 7;
  int rounds = 5;
  double sd = 0.01, effect = 0.03, threshold = 0.015;  // effect: of the first point
};

// A gate as `--ab` runs it: first rounds, and fresh ones of what did not pass, by judge() itself.
class Gates {
 public:
  double red(const Simulated& gate, int count) {
    int red = 0;
    for (int i = 0; i < count; ++i) red += judge_error(gate) == Verdict::regression;
    return static_cast<double>(red) / count;
  }

  Judgement first_rounds(const Simulated& gate) {
    const auto [baseline, current] = sides(gate, "first");
    GateOptions options;
    options.thresholds[Quantity::time] = gate.threshold;
    return judge(baseline, current, options);
  }

 private:
  Verdict judge_error(const Simulated& gate) {
    GateOptions options;
    options.thresholds[Quantity::time] = gate.threshold;
    Judgement judgement = first_rounds(gate);
    if (judgement.verdict() == Verdict::pass) return Verdict::pass;
    const auto [baseline, current] = sides(gate, "fresh");
    settle(judgement, judge(baseline, current, find_suspects(judgement, options)));
    return judgement.checks.front().verdict;  // of the point that is slower
  }

  std::pair<Side, Side> sides(const Simulated& gate, const std::string& session) {
    std::pair<Side, Side> both;
    for (int round = 1; round <= gate.rounds; ++round) {
      const double drift = 0.02 * random_.normal();
      for (std::size_t point = 0; point < gate.points; ++point) {
        add(both.first, point, session, round, drift + gate.sd * random_.normal());
        const double slower = point == 0 ? std::log1p(gate.effect) : 0;
        add(both.second, point, session, round, slower + drift + gate.sd * random_.normal());
      }
    }
    return both;
  }

  static void add(Side& side, std::size_t point, const std::string& session, int round,
                  double log_time) {
    if (side.subjects.size() <= point) side.subjects.resize(point + 1);
    Subject& subject = side.subjects[point];
    subject.name = "point " + std::to_string(point);
    subject.samples[Quantity::time].push_back({10 * std::exp(log_time), session, round});
    ++subject.runs;
  }

  RandomSequence random_{20261125, Stream::synthetic, 0};
};

constexpr int kGates = 1500;  // a standard error of 0.6 points at 95 %

TEST(Plan, ThePromisedPowerHolds) {
  for (const std::size_t points : {1UL, 3UL, 7UL}) {
    for (const double sd : {0.01, 0.025}) {
      const Limits limits = make_limits(0.015, true);
      const double pair = std::sqrt(2.0) * sd, effect = std::log1p(0.03);
      const int rounds = rounds_needed(limits, pair, 0, effect, points - 1, 0.95);
      ASSERT_GT(rounds, 3);
      const double promised = chance_confirmed(limits, Rounds{rounds, pair}, effect, points - 1);
      EXPECT_GE(promised, 0.95);
      EXPECT_LT(chance_confirmed(limits, Rounds{rounds - 1, pair}, effect, points - 1), 0.955);
      const double found = Gates().red({points, rounds, sd, 0.03, 0.015}, kGates);
      EXPECT_NEAR(found, promised, 0.03) << points << " points, " << rounds << " rounds, " << sd;
    }
  }
}

TEST(Plan, AGateSeesWhatItPromises) {
  for (const double sd : {0.005, 0.02}) {
    const Limits limits = make_limits(0.025, true);
    const double pair = std::sqrt(2.0) * sd;
    const double seen = smallest_seen(
        [&](double effect) {
          return chance_confirmed(limits, Rounds{5, pair}, effect, 6);
        },
        0.95);
    const double found = Gates().red({7, 5, sd, std::expm1(seen), 0.025}, kGates);
    EXPECT_NEAR(found, 0.95, 0.03) << "sees " << std::expm1(seen);
    // And no less: two thirds of it are missed often.
    EXPECT_LT(Gates().red({7, 5, sd, std::expm1(seen) * 2 / 3, 0.025}, kGates), 0.85);
  }
}

TEST(Plan, SessionsAreTestedAsTheGateTestsThem) {
  RandomSequence random(20261125, Stream::synthetic, 3);
  const Limits limits = make_limits(0.025, true);
  const double between = 0.02, run = 0.01, effect = std::log1p(0.05);
  const int repeats = 3;
  const double sd = std::sqrt(between * between + run * run / repeats);
  const int sessions = sessions_needed(limits, sd, effect, 0, 0.95);
  ASSERT_GT(sessions, 3);
  int red = 0;
  for (int gate = 0; gate < kGates; ++gate) {
    Side baseline, current;
    for (Side* side : {&baseline, &current}) {
      side->subjects.resize(1);
      side->subjects[0].name = "point";
      side->subjects[0].runs = static_cast<std::size_t>(sessions * repeats);
      for (int session = 0; session < sessions; ++session) {
        const double day = between * random.normal() + (side == &current ? effect : 0);
        for (int repeat = 1; repeat <= repeats; ++repeat) {
          side->subjects[0].samples[Quantity::time].push_back(
              {std::exp(day + run * random.normal()),
               (side == &current ? "now " : "then ") + std::to_string(session), repeat});
        }
      }
    }
    red += judge(baseline, current, {}).verdict() == Verdict::regression;
  }
  const double promised = chance_of_regression(limits, of_sessions(sessions, sd), effect, 1);
  EXPECT_NEAR(static_cast<double>(red) / kGates, promised, 0.03) << sessions << " sessions";
}

TEST(Plan, RoundsThatAreLeftAsideCostPower) {
  const Limits limits = make_limits(0.015, true);
  const double pair = std::sqrt(2.0) * 0.01, effect = std::log1p(0.03);
  const int clean = rounds_needed(limits, pair, 0, effect, 4, 0.95);
  EXPECT_GT(rounds_needed(limits, pair, 0.1, effect, 4, 0.95), clean);
  EXPECT_LT(chance_confirmed(limits, Rounds{clean, pair, 0.1}, effect, 4),
            chance_confirmed(limits, Rounds{clean, pair}, effect, 4));
}

TEST(Plan, APassReportsWhatItWouldHaveSeen) {
  Gates gates;
  const Simulated itself{.points = 5, .rounds = 5, .sd = 0.01, .effect = 0, .threshold = 0.025};
  const Judgement judgement = gates.first_rounds(itself);
  const auto once = seen_slowdown(judgement, {false, 0}),
             twice = seen_slowdown(judgement, {true, 0});
  ASSERT_TRUE(once && twice);
  EXPECT_GT(*twice, 0.025);
  EXPECT_LT(*twice, 0.07);
  EXPECT_GT(gates.red({5, 5, 0.01, *twice, 0.025}, 300), 0.92);
  EXPECT_TRUE(seen_slowdown(judgement, {true, 40}));
  Judgement exact;
  exact.checks = {Check{}};
  EXPECT_FALSE(seen_slowdown(exact, {true, 0}));
}

TEST(Plan, AGateUntilDecidedSavesRounds) {
  const Limits limits = make_limits(0.025, true);
  const double pair = std::sqrt(2.0) * 0.01;
  const SequentialOutcome equal = until_decided(limits, {0, pair}, 0, 7, 40);
  EXPECT_GT(equal.decided, 0.99);
  EXPECT_GE(equal.rounds, 29) << "so many show that a tenth of the runs hangs";
  EXPECT_LT(equal.regression, 0.01);
  const SequentialOutcome slower = until_decided(limits, {0, pair}, std::log1p(0.05), 7, 40);
  EXPECT_GT(slower.regression, 0.95);
  EXPECT_LT(slower.rounds, equal.rounds);
  EXPECT_LT(until_decided(limits, {0, pair / 4}, 0, 7, 12).rounds, 12.01);
}

TEST(Plan, ProposedThresholdsFollowTheNoise) {
  Gates gates;
  const Simulated itself{.points = 7, .rounds = 5, .sd = 0.01, .effect = 0, .threshold = 0.025};
  const auto proposals = propose_thresholds(gates.first_rounds(itself), itself.rounds);
  ASSERT_EQ(proposals.size(), 1U);  // only times
  ASSERT_TRUE(proposals[0].threshold);
  const double threshold = *proposals[0].threshold;
  EXPECT_GT(threshold, 0.008);
  EXPECT_LT(threshold, 0.04);
  // Twice as much is found, at the true noise, and a quieter machine gets less.
  EXPECT_GT(gates.red({7, 5, 0.01, 2 * threshold, threshold}, 500), 0.92);
  const Simulated quiet{.points = 7, .rounds = 5, .sd = 0.002, .effect = 0, .threshold = 0.025};
  EXPECT_LT(*propose_thresholds(gates.first_rounds(quiet), 5)[0].threshold, threshold / 3);
  expect_parts(to_text({.sections = {proposals_section(proposals, default_thresholds(), 5)}}),
               {"paste: --threshold "});
}

TEST(Plan, EqualValuesKeepTheThreshold) {
  Side side;
  side.subjects.resize(1);
  side.subjects[0].name = "point";
  side.subjects[0].runs = 3;
  for (int round = 1; round <= 3; ++round) {
    side.subjects[0].samples[Quantity::loss].push_back({0.5, "s", round});
  }
  const auto proposals = propose_thresholds(judge(side, side, {}), 5);
  ASSERT_EQ(proposals.size(), 1U);
  EXPECT_FALSE(proposals[0].threshold);
  const std::string text =
      to_text({.sections = {proposals_section(proposals, default_thresholds(), 5)}});
  expect_parts(text, {"as it is"});
  expect_no_parts(text, {"paste"});
}

struct Pilot {
  int points = 6, rounds = 15, sessions = 8;
  double run = 0.01, round = 0.02, session = 0.03, node = 0;
  int nodes = 1;
};

StoreContent make_pilot(const Pilot& pilot) {
  RandomSequence random(20261125, Stream::synthetic, 4);
  std::vector<Json> records;
  std::vector<double> node(static_cast<std::size_t>(pilot.nodes));
  for (double& effect : node) effect = pilot.node * random.normal();
  for (int session = 0; session < pilot.sessions; ++session) {
    const double day = pilot.session * random.normal();
    for (int round = 1; round <= pilot.rounds; ++round) {
      const double drift = day + pilot.round * random.normal();
      for (int point = 1; point <= pilot.points; ++point) {
        const auto host = static_cast<std::size_t>(round + point) % node.size();
        const double log_time = drift + node[host] + pilot.run * random.normal();
        Json record = sample_record({.gpus = point,
                                     .repeat = round,
                                     .fit_seconds = 36 / point * std::exp(log_time),
                                     .session = "s" + std::to_string(session)});
        record["timing"]["step_seconds"] =
            Json::array({{{"p05", 0.004}, {"p50", 0.005}, {"p95", 0.006}}});
        record["provenance"]["hosts"] = {"n" + std::to_string(host)};
        records.push_back(record);
      }
    }
  }
  return canonical_content(records);
}

// A change of the program between them is no noise.
TEST(Noise, RunsThatANewBuildMadeAgainAreLeftOut) {
  std::vector<Json> records;
  for (int repeat = 1; repeat <= 4; ++repeat) {
    for (const int attempt : {1, 2}) {
      records.push_back(
          sample_record({.repeat = repeat, .fit_seconds = 12 * attempt + 0.01 * repeat}));
      records.back()["attempt"] = attempt;
      records.back()["provenance"]["commit"] = attempt == 1 ? "0123456" : "789abcd";
    }
  }
  const Noise noise = estimate_noise(canonical_content(records));
  EXPECT_EQ(noise.notes.at(0),
            "pilot: left out: 4 runs of earlier builds, which --new-build made again");
  EXPECT_LT(*noise.level("run").sd, 0.01);
}

TEST(Noise, EachLevelIsFound) {
  const Noise noise = estimate_noise(make_pilot({}));
  EXPECT_NEAR(*noise.level("run").sd, 0.01, 0.001);
  EXPECT_NEAR(*noise.level("round").sd, 0.02, 0.004);
  EXPECT_NEAR(*noise.level("session").sd, 0.03, 0.015);  // 7 degrees of freedom
  EXPECT_EQ(noise.level("session").degrees_of_freedom, 7);
  EXPECT_FALSE(noise.level("node").sd);
  EXPECT_EQ(noise.level("node").remark, "one node");
  EXPECT_NEAR(*noise.level("step").sd, 0.2 / 1.645, 1e-6);
  ASSERT_EQ(noise.points.size(), 6U);
  const PointNoise& point = noise.points.begin()->second;
  EXPECT_NEAR(point.sd, 0.01, 0.002);
  EXPECT_EQ(point.runs, 120U);
  ASSERT_TRUE(point.hours);
}

TEST(Noise, WhatRecordsCannotDistinguishIsReported) {
  const Noise one_session = estimate_noise(make_pilot({.sessions = 1}));
  EXPECT_FALSE(one_session.level("session").sd);
  EXPECT_EQ(one_session.level("session").remark, "one session");
  const Noise one_point = estimate_noise(make_pilot({.points = 1}));
  EXPECT_FALSE(one_point.level("round").sd);
  expect_parts(one_point.level("run").remark, {"points share none"});
  EXPECT_NEAR(*one_point.level("run").sd, std::hypot(0.01, 0.02), 0.005);
  const Noise nodes = estimate_noise(make_pilot({.node = 0.03, .nodes = 4}));
  ASSERT_TRUE(nodes.level("node").sd);
  EXPECT_GT(*nodes.level("node").sd, 0.01);
  EXPECT_THROW(estimate_noise(make_pilot({.rounds = 1, .sessions = 1})), Error);
  EXPECT_FALSE(estimate_noise(make_pilot({.rounds = 1, .sessions = 3})).level("run").sd);
}

// A gate leaves them aside, so they are none of its noise, and cost rounds.
TEST(Noise, RunsThatStandOutAreCounted) {
  StoreContent pilot = make_pilot({.points = 5, .rounds = 5, .sessions = 1, .round = 0.005});
  const Noise clean = estimate_noise(pilot);
  EXPECT_EQ(clean.runs, 25U);
  EXPECT_EQ(clean.outlying, 0U);
  Json record =
      sample_record({.gpus = 3, .repeat = 2, .fit_seconds = 36.0 / 3 * 1.5, .session = "s0"});
  for (Record& each : pilot.records) {
    if (each->parameters.real("gpus") == 3 && each->round == 2) each = Record(record, "long");
  }
  const Noise noise = estimate_noise(pilot);
  EXPECT_EQ(noise.outlying, 1U);
  EXPECT_NEAR(*noise.level("run").sd, *clean.level("run").sd, 0.003);
  EXPECT_NEAR(upper_share(0, 25), 1 - std::pow(0.2, 1.0 / 25), 1e-9);
  EXPECT_GT(upper_share(1, 25), upper_share(0, 25));
  DesignRequest request;
  request.workload = "mnist-cnn";
  for (const auto& [name, point] : noise.points) request.points.push_back(name);
  expect_parts(to_text(design_document(make_design(request, noise)), {.width = 1000}),
               {"outliers: 1 of 25 runs of the pilot; planned with 3 % of runs",
                "with 12 %, the upper bound of the pilot (80 %), it takes "});
  // A short pilot without any does not forbid the gate that would find it.
  const Noise short_pilot = estimate_noise(
      make_pilot({.points = 1, .rounds = 8, .sessions = 1, .run = 0.008, .round = 0}));
  EXPECT_EQ(short_pilot.outlying, 0U);
  request.points = {short_pilot.points.begin()->first};
  const Design design = make_design(request, short_pilot);
  ASSERT_TRUE(design.seen);
  EXPECT_LT(*design.seen, 0.06);
  EXPECT_GT(design.rounds, 3);
  EXPECT_LT(design.rounds, 20);
}

TEST(Noise, FewRunsLeaveMoreOpen) {
  EXPECT_NEAR(upper_sd(1, 4), 1.557, 0.01);  // sqrt(4 / 1.649)
  EXPECT_LT(upper_sd(1, 40), 1.12);
}

TEST(Design, ReportsWhatTheGateSeesAndNeeds) {
  DesignRequest request;
  request.study = "quick";
  request.workload = "mnist-cnn";
  request.points = {"mnist-cnn gpus=1", "mnist-cnn gpus=2"};
  const Design design = make_design(request, stated_noise(0.02));
  ASSERT_TRUE(design.seen);
  EXPECT_GT(*design.seen, 0.05);
  EXPECT_GT(design.rounds, 5);
  EXPECT_TRUE(design.sessions.empty());
  expect_parts(to_text(design_document(design), {.width = 1000}),
               {"gate --ab --rounds 5 --threshold 2.5% cannot see 3 %: it sees ",
                "--threshold 1.5% --rounds ", "core-hours unknown", "stored sessions: not planned",
                "assumed: times vary as stated, without outliers",
                "if 5 % of runs take far longer, the power of these rounds is "});
  EXPECT_EQ(Json::parse(to_json_text(design_document(design)))["needed"]["rounds"], design.rounds);
  request.detect = 0.2;
  expect_parts(to_text(design_document(make_design(request, stated_noise(0.02))), {.width = 1000}),
               {" sees "});
  request.detect = 0.001;
  expect_parts(to_text(design_document(make_design(request, stated_noise(0.2))), {.width = 1000}),
               {"more than 200 rounds"});
}

TEST(Design, APilotGivesHoursAndSessions) {
  const Noise noise = estimate_noise(make_pilot({.run = 0.01, .round = 0.005, .session = 0.01}));
  DesignRequest request;
  request.study = "quick";
  request.workload = "mnist-cnn";
  for (const auto& [name, point] : noise.points) request.points.push_back(name);
  request.points.push_back("mnist-cnn gpus=512");
  const Design design = make_design(request, noise);
  ASSERT_TRUE(design.hours_per_round);
  EXPECT_EQ(design.points_without_hours, 1U);
  ASSERT_EQ(design.sessions.size(), 5U);
  // More runs a session need no more sessions, and cost more.
  for (std::size_t i = 1; i < design.sessions.size(); ++i) {
    EXPECT_LE(design.sessions[i].sessions, design.sessions[i - 1].sessions);
  }
  EXPECT_GT(*design.sessions.back().hours, *design.sessions.front().hours);
  expect_parts(to_text(design_document(design), {.width = 1000}),
               {"without 1 point, which the pilot did not run"});
}

}  // namespace
}  // namespace paceline
