// Sessions, nodes, rounds and lost runs, in tables whose truth is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "analysis/findings/findings.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

constexpr int kReplicas[] = {1, 2, 4, 8};

// Ideal scaling with a noise of 0.4 %, times a factor of session (from 1), size and round.
std::vector<Json> study(int sessions, int rounds,
                        const std::function<double(int, int, int)>& factor) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<Json> records;
  for (int session = 1; session <= sessions; ++session) {
    for (int round = 1; round <= rounds; ++round) {
      for (const int gpus : kReplicas) {
        const double noise = std::exp(0.004 * normal(random));
        records.push_back(
            sample_record({.gpus = gpus,
                           .repeat = round + 1000 * (session - 1),
                           .round = round,
                           .fit_seconds = 100.0 / gpus * factor(session, gpus, round) * noise,
                           .session = "2026112" + std::to_string(session)}));
        records.back()["provenance"]["hosts"] = {"node01"};
      }
    }
  }
  return records;
}

double same(int, int, int) {
  return 1;
}

std::vector<Finding> found_in(const std::vector<Json>& records,
                              Pooling pooling = Pooling::by_sessions) {
  const auto [made, comparison, facts] =
      Compared(make_studies(canonical_content(records), {}, {}, pooling).at(0));
  return findings(made, comparison, facts);
}

// Empty: there is none of the kind.
std::string sentence(const std::vector<Finding>& found, FindingKind kind) {
  const auto it = std::find_if(found.begin(), found.end(),
                               [kind](const Finding& each) { return each.kind == kind; });
  return it == found.end() ? "" : it->text;
}

constexpr FindingKind kOfRuns[] = {FindingKind::survivors,       FindingKind::sessions_differ,
                                   FindingKind::rounds_trend,    FindingKind::slow_first_round,
                                   FindingKind::rounds_step,     FindingKind::slow_rounds,
                                   FindingKind::rounds_resemble, FindingKind::sessions_alike};

TEST(RunOrder, IndependentRunsOfOneSessionHaveNoneOfTheFindings) {
  const auto found = found_in(study(1, 5, same));
  for (const FindingKind kind : kOfRuns) EXPECT_EQ(sentence(found, kind), "");
  EXPECT_EQ(sentence(found, FindingKind::one_session),
            "all runs are of one session: another may differ by more than these intervals");
}

TEST(RunOrder, ATrendOverRoundsIsOneFinding) {
  const auto found =
      found_in(study(1, 8, [](int, int, int round) { return 1 + 0.03 * (round - 1); }));
  const std::string said = sentence(found, FindingKind::rounds_trend);
  EXPECT_TRUE(said.starts_with("times rise by 2.7 % a round [")) << said;
  EXPECT_TRUE(contains(said, "in all 4 rows")) << said;
  EXPECT_EQ(sentence(found, FindingKind::slow_first_round), "");
}

TEST(RunOrder, TimesThatFallAreReportedAsAFall) {
  const auto found =
      found_in(study(1, 6, [](int, int, int round) { return std::exp(-0.02 * round); }));
  EXPECT_TRUE(sentence(found, FindingKind::rounds_trend).starts_with("times fall by 2.0 % a round"))
      << sentence(found, FindingKind::rounds_trend);
}

TEST(RunOrder, AStepIsNoTrend) {
  const auto found =
      found_in(study(1, 12, [](int, int, int round) { return round > 6 ? 1.08 : 1; }));
  const std::string said = sentence(found, FindingKind::rounds_step);
  EXPECT_TRUE(said.starts_with("runs take ")) << said;
  EXPECT_TRUE(contains(said, " % longer [")) << said;
  EXPECT_TRUE(contains(said, "in all 4 rows")) << said;
  EXPECT_EQ(sentence(found, FindingKind::rounds_trend), "");
}

TEST(RunOrder, AStepOfOneSessionNamesIt) {
  const auto found = found_in(
      study(2, 8, [](int session, int, int round) { return session == 2 && round > 5 ? 0.9 : 1; }));
  const std::string said = sentence(found, FindingKind::rounds_step);
  EXPECT_TRUE(contains(said, " from round 6 of session 2 on")) << said;
  EXPECT_TRUE(contains(said, " % less [")) << said;
}

TEST(RunOrder, SlowRoundsAreNamed) {
  const auto found = found_in(study(1, 12, [](int, int gpus, int round) {
    return round == 4 || (round == 9 && gpus > 0) ? 1.1 : 1;
  }));
  const std::string said = sentence(found, FindingKind::slow_rounds);
  EXPECT_TRUE(said.starts_with("rounds 4, 9 take ")) << said;
  EXPECT_TRUE(contains(said, " % longer [")) << said;
  const auto last = found_in(study(1, 8, [](int, int, int round) { return round == 8 ? 1.1 : 1; }));
  EXPECT_TRUE(sentence(last, FindingKind::slow_rounds).starts_with("round 8 takes "));
}

// A line and a step differ by little in six noisy rounds.
TEST(RunOrder, ShapesThatFitAlikeAreBothNamed) {
  RoundMatrix rows;
  for (const double noise : {0.004, -0.003, 0.002}) {
    rows.push_back({0, 0.02 + noise, 0.05, 0.15 - noise, 0.19, 0.2});
  }
  const auto patterns = find_patterns({rows});
  ASSERT_EQ(patterns.size(), 2U);
  SessionRounds session{"s1", {0, 1, 2}, rows, {1, 2, 3, 4, 5, 6}};
  const std::string said = round_findings({session}).at(0).text;
  EXPECT_TRUE(contains(said, "times rise by ")) << said;
  EXPECT_TRUE(contains(said, "] from round 4 on")) << said;
  EXPECT_TRUE(contains(said, "; these runs do not show which; ")) << said;
}

// Session 3 shares 4 replicas with session 2 alone.
TEST(RunOrder, ASessionIsComparedWithOneThatSharesRows) {
  auto records = study(3, 5, [](int session, int, int) { return session == 3 ? 1.15 : 1; });
  std::erase_if(records, [](const Json& json) {
    const int gpus = json["layout"]["gpus"];
    const std::string session = json["session"];
    return (session == "20261121" && gpus > 2) || (session == "20261122" && gpus == 1) ||
           (session == "20261122" && gpus == 8) || (session == "20261123" && gpus < 4);
  });
  const auto found = found_in(records, Pooling::never);
  std::string all;
  for (const Finding& each : found) all += each.text + "\n";
  EXPECT_TRUE(contains(all, "session 3 (20261123) was 1")) << all;
  EXPECT_TRUE(contains(all, "slower than session 2 throughout")) << all;
}

TEST(RunOrder, ASlowFirstRoundIsNamed) {
  const auto found =
      found_in(study(1, 5, [](int, int, int round) { return round == 1 ? 1.3 : 1; }));
  const std::string said = sentence(found, FindingKind::slow_first_round);
  EXPECT_TRUE(said.starts_with("the first round is 3")) << said;
  EXPECT_EQ(sentence(found, FindingKind::rounds_trend), "");
}

// The record says that nothing else ran.
TEST(RunOrder, OneColdRunIsNoBusyMachine) {
  auto records =
      study(1, 5, [](int, int gpus, int round) { return gpus == 1 && round == 1 ? 1.3 : 1; });
  for (Json& json : records) {
    json["provenance"]["machine_load"] = {{"busy", false}, {"worst_other_cpu_share", 0.0}};
  }
  const auto found = found_in(records);
  const std::string said = sentence(found, FindingKind::runs_differ);
  EXPECT_TRUE(contains(said, "its first run is the slowest: caches may be cold then")) << said;
  EXPECT_FALSE(contains(said, "busy")) << said;
  EXPECT_EQ(sentence(found, FindingKind::slow_first_round), "") << "one row is not all";
  EXPECT_TRUE(contains(join(report_section(records).notes, "\n"),
                       "other processes used none of the CPUs in all runs"));
}

TEST(RunOrder, WhatOthersTookIsTheRecordsNumber) {
  auto records = study(1, 3, same);
  for (Json& json : records) {
    json["provenance"]["machine_load"] = {{"busy", false}, {"worst_other_cpu_share", 0.014}};
  }
  EXPECT_TRUE(contains(join(report_section(records).notes, "\n"),
                       "other processes used up to 1.4 % of the CPUs in all runs"));
}

TEST(RunOrder, RunsThatResembleTheOneBeforeAreReported) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::map<int, double> state;
  const auto found = found_in(study(1, 12, [&](int, int gpus, int) {
    state[gpus] = 0.9 * state[gpus] + 0.04 * std::sqrt(1 - 0.81) * normal(random);
    return std::exp(state[gpus]);
  }));
  const std::string said = sentence(found, FindingKind::rounds_resemble);
  EXPECT_TRUE(contains(said, ": runs resemble those of the round before (correlation 0.")) << said;
  EXPECT_TRUE(contains(said, "too narrow")) << said;
}

TEST(RunOrder, ASecondSessionThatIsSlowerThroughoutIsNamed) {
  const auto found =
      found_in(study(2, 5, [](int session, int, int) { return session == 2 ? 1.1 : 1; }));
  const std::string said = sentence(found, FindingKind::sessions_differ);
  EXPECT_TRUE(said.starts_with("session 2 (20261122) was 9.8 % slower")) << said;
  EXPECT_TRUE(contains(said, " % slower than session 1 throughout [")) << said;
  EXPECT_EQ(sentence(found, FindingKind::one_session), "");
}

TEST(RunOrder, SessionsThatAreIndistinguishableAreReported) {
  const std::string said = sentence(found_in(study(2, 5, same)), FindingKind::sessions_alike);
  EXPECT_TRUE(said.starts_with("session 2 (20261122) cannot be distinguished from session 1: "))
      << said;
}

// The session is the unit, and two that differ are too few for a claim about the point.
TEST(RunOrder, ARowThatIsSlowerInOneSessionIsNoLossOfTheRow) {
  const auto slow = [](int session, int gpus, int) {
    return session == 2 && gpus == 8 ? 1.2 : 1.0;
  };
  const auto records = study(2, 5, slow);
  const auto found = found_in(records);
  const std::string said = sentence(found, FindingKind::sessions_differ);
  EXPECT_TRUE(contains(said,
                       "in session 2 (20261122) rows differ from session 1 in different ways: 8 "
                       "replicas 2") ||
              contains(said, "8 replicas 19"))
      << said;
  EXPECT_TRUE(contains(said, "the other rows cannot be distinguished from session 1")) << said;
  EXPECT_TRUE(make_studies(canonical_content(records)).at(0).rows[0].pooled);
  EXPECT_EQ(sentence(found, FindingKind::grows), "");
}

TEST(RunOrder, ThreeSessionsAreTheUnit) {
  const auto records = study(3, 4, [](int session, int, int) { return 1 + 0.05 * session; });
  const Study pooled = make_studies(canonical_content(records)).at(0);
  EXPECT_TRUE(pooled.rows[0].pooled);
  EXPECT_EQ(units_in(pooled.rows[0]), 3U);
  EXPECT_TRUE(contains(join(machine_notes(pooled), "\n"),
                       "intervals cover how sessions differ, up to 3 a row"));
  const Study runs = make_studies(canonical_content(records), {}, {}, Pooling::never).at(0);
  EXPECT_EQ(units_in(runs.rows[0]), 12U);
}

// A sweep that was stopped and went on, or a few runs that were made again.
TEST(RunOrder, AFewRowsOfThreeSessionsDoNotPoolATable) {
  auto records = study(1, 5, same);
  for (Json& json : records) {
    const int round = json["round"];
    if (json["layout"]["gpus"] == 8 && round > 3) json["session"] = "s" + std::to_string(round);
  }
  EXPECT_FALSE(make_studies(canonical_content(records)).at(0).rows[0].pooled);
}

TEST(RunOrder, LostRunsStandInTheirRow) {
  auto records = study(1, 5, same);
  for (Json& json : records) {
    const int gpus = json["layout"]["gpus"], round = json["round"];
    if (gpus != 4 && !(gpus == 8 && round % 2 == 0)) continue;
    json["status"] = "failed";
    json["reason"] = "rank 3 on vm: out of memory";
    for (const char* key : {"timing", "throughput", "phases", "quality"}) json.erase(key);
  }
  EXPECT_EQ(sentence(found_in(records), FindingKind::survivors),
            "8 replicas: 3 of 5 runs completed (rank 3 on vm: out of memory); its numbers are of "
            "these only");
  const Section section = report_section(records);
  EXPECT_EQ(cell(section, 3, "label").text, "3 of 5 runs completed");
  EXPECT_EQ(cell(section, 0, "label").text, "");
  EXPECT_TRUE(contains(join(section.caveats, "\n"), "7 runs of 2 points that ended as failed"));
}

TEST(RunOrder, RunsWithoutRoundsHaveNoOrder) {
  auto records = study(1, 8, [](int, int, int round) { return 1 + 0.03 * (round - 1); });
  for (Json& json : records) json["round"] = 0;
  EXPECT_EQ(sentence(found_in(records), FindingKind::rounds_trend), "");
}

// No noise at all: differences of rounding are none.
TEST(RunOrder, EqualRunsShowNothing) {
  const RoundMatrix equal(3, std::vector<double>(6, std::log(12.34)));
  EXPECT_EQ(trend_over_rounds({equal}).p_value(), 1);
  EXPECT_EQ(first_round_excess({equal}).p_value(), 1);
  EXPECT_EQ(resemblance_of_rounds({equal}).p, 1);
  EXPECT_TRUE(session_shift(equal, equal, 0.05).apart.empty());
}

}  // namespace
}  // namespace paceline
