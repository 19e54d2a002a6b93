// What runs differ in beside what is compared: within rows, between rows, between sides.
#include "analysis/evidence/covariates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "analysis/explain/explain.h"
#include "analysis/gate/judge.h"
#include "analysis/history/history.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

struct PlaceOfRun {
  int gpus = 1, round = 1, session = 1;
  int minute = 0;  // of its start
};

// Ideal scaling with a noise of 0.5 %, in rounds, each of another order.
std::vector<Json> made_runs(const std::function<double(const PlaceOfRun&)>& factor,
                            const std::function<void(const PlaceOfRun&, Json&)>& change,
                            int rounds = 6, int sessions = 1, std::uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Json> records;
  for (int session = 1; session <= sessions; ++session) {
    for (int round = 1; round <= rounds; ++round) {
      std::vector<int> sizes = {1, 2, 4, 8};
      std::shuffle(sizes.begin(), sizes.end(), random);
      for (int k = 0; k < 4; ++k) {
        const PlaceOfRun place{sizes[static_cast<std::size_t>(k)], round, session, 4 * round + k};
        const double seconds =
            100.0 / place.gpus * factor(place) * std::exp(0.005 * normal(random));
        Json record = sample_record({.gpus = place.gpus,
                                     .repeat = 100 * session + round,
                                     .round = round,
                                     .fit_seconds = seconds,
                                     .session = "2026112" + std::to_string(session)});
        record["provenance"]["hosts"] = {"node01"};
        record["provenance"]["started_at"] =
            fmt::format("2026-11-2{}T03:{:02}:00Z", session, place.minute);
        change(place, record);
        records.push_back(std::move(record));
      }
    }
  }
  return records;
}

double no_effect(const PlaceOfRun&) {
  return 1;
}

std::string warnings_of(const std::vector<Json>& records) {
  return join(make_studies(canonical_content(records)).at(0).warnings, "\n");
}

bool is_elsewhere(const PlaceOfRun& place) {
  return place.gpus == 8 && place.round % 2 == 0;
}

double slow_elsewhere(const PlaceOfRun& place) {
  return is_elsewhere(place) ? 1.2 : 1;
}

TEST(Covariates, ASlowNodeInSomeRunsIsNamedWithItsFactor) {
  const auto records = made_runs(slow_elsewhere, [](const PlaceOfRun& place, Json& record) {
    if (is_elsewhere(place)) record["provenance"]["hosts"] = {"node07"};
  });
  expect_parts(warnings_of(records), {"runs on node07 take 1.20 [1.20, 1.21] times as long as the "
                                      "others of their row (3 of 24 runs)"});
  EXPECT_TRUE(make_studies(canonical_content(records)).at(0).causes.are_open);
}

TEST(Covariates, EachIsARowOfOneTable) {
  const auto of = [](const std::function<void(bool, Json&)>& change) {
    return warnings_of(made_runs(slow_elsewhere, [&](const PlaceOfRun& place, Json& record) {
      change(is_elsewhere(place), record);
    }));
  };
  expect_parts(
      of([](bool is_other, Json& run) { run["input"]["cold"] = is_other; }),
      {"runs with a cold cache of data take 1.20 [", "as those with a warm cache of data"});
  expect_parts(of([](bool is_other, Json& run) {
                 run["provenance"]["commit"] = is_other ? "bbbb" : "aaaa";
               }),
               {"runs with build ", "bbbb take 1.20 ["});
  expect_parts(of([](bool is_other, Json& run) {
                 run["provenance"]["machine_load"]["least_mhz"] = is_other ? 2500 : 3000;
               }),
               {"at a clock of 2500 MHz runs take 1.20 [", "times as long as at 3000 MHz"});
  const auto screened = of([](bool is_other, Json& run) {
    Json& facts = run["provenance"]["screened"] = {{"started_at", "2026-11-28T01:00:00Z"}};
    if (!is_other) return;
    facts["slow"] = {"cn12", "cn12"};
    facts["sizes"] = {"8.0 % slower in sums of 4 MB", "5.1 % slower in sums of 8 bytes"};
  });
  expect_parts(
      screened,
      {"runs with cn12 slow in the screen take 1.20 [", "as those with nothing named by the screen",
       "slow in the screen before the run: cn12 (8.0 % slower in sums of 4 MB), 3 of 24 "
       "runs"});
  expect_parts(
      of([](bool is_other, Json& run) { run["provenance"]["machine_load"]["busy"] = is_other; }),
      {"runs while the machine was busy take 1.20 ["});
}

// Rows of one size on one node and on two.
TEST(Covariates, TheNumberOfNodesIsComparedAtEqualSizes) {
  auto records = made_runs(no_effect, [](const PlaceOfRun&, Json&) {});
  for (Json record : made_runs([](const PlaceOfRun&) { return 1.25; },
                               [](const PlaceOfRun&, Json&) {}, 6, 1, 6)) {
    if (record["layout"]["gpus"] == 1) continue;
    record["layout"]["nodes"] = record["parameters"]["nodes"] = 2;
    record["provenance"]["hosts"] = {"node01", "node02"};
    record["point"] = record["point"].get<std::string>() + ",nodes=2";
    records.push_back(std::move(record));
  }
  expect_parts(warnings_of(records), {"runs on 2 nodes take 1.25 [1.25, 1.26] times as long as "
                                      "those on 1 node (18 of 42 runs)"});
}

// Runs on any of four nodes, that are alike: in at most 2 % of tables anything is said.
TEST(Covariates, EqualNodesAreNotNamed) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    std::mt19937_64 random(seed);
    named += warnings_of(made_runs(
                             no_effect,
                             [&](const PlaceOfRun&, Json& record) {
                               const auto node = std::to_string(random() % 4);
                               record["provenance"]["hosts"] = {"node" + node};
                               record["provenance"]["machine_load"]["least_mhz"] =
                                   2600 + static_cast<int>(random() % 300);
                             },
                             5, 1, seed))
                     .empty()
                 ? 0
                 : 1;
  }
  EXPECT_LE(named, 7);
}

// All rows of a round share its node and how slow it was: six rounds, not 24 runs.
TEST(Covariates, WhatARoundSharesIsOneUnit) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> rounds;
    for (int round = 0; round <= 6; ++round) rounds.push_back(std::exp(0.03 * normal(random)));
    named += warnings_of(made_runs(
                             [&](const PlaceOfRun& place) {
                               return rounds[static_cast<std::size_t>(place.round)];
                             },
                             [](const PlaceOfRun& place, Json& record) {
                               record["provenance"]["hosts"] = {place.round % 2 ? "a" : "b"};
                             },
                             6, 1, seed))
                     .empty()
                 ? 0
                 : 1;
  }
  EXPECT_LE(named, 6);
}

TEST(Covariates, RowsThatShareNothingAreNamed) {
  const auto records = made_runs(no_effect, [](const PlaceOfRun& place, Json& record) {
    if (place.gpus == 8) record["provenance"]["hosts"] = {"node07"};
    record["provenance"]["machine_load"]["least_mhz"] = place.gpus <= 2 ? 2400 : 3000;
    record["input"]["cold"] = place.gpus == 1;
  });
  expect_parts(warnings_of(records),
               {"8 replicas ran only on node07, no other row did: its effect cannot be "
                "distinguished from that of the row",
                "the clock was 2400 MHz in 1 replica, 2 replicas, and 3000 MHz in the other rows: "
                "its effect cannot be distinguished",
                "1 replica ran only with a cold cache of data, no other row did: its effect"});
  const Causes causes = make_studies(canonical_content(records)).at(0).causes;
  EXPECT_TRUE(!causes.are_open && causes.are_named(0.01));
}

TEST(Covariates, ASessionThatOneRowHadToItselfIsNamed) {
  const auto records = made_runs(no_effect, [](const PlaceOfRun& place, Json& record) {
    if (place.gpus == 8) record["session"] = "20261128";
  });
  expect_parts(warnings_of(records),
               {"8 replicas ran only in session 20261128, no other row did: its effect"});
}

TEST(Covariates, NodesThatRowsShareInPartAreNotTheirOwn) {
  const auto records = made_runs(no_effect, [](const PlaceOfRun& place, Json& record) {
    if (place.gpus == 8) record["provenance"]["hosts"] = {"node01", "node07"};
  });
  EXPECT_EQ(warnings_of(records), "") << "node01 has others, too";
}

// Ideal but for a clock that falls in long runs: no question about caches.
TEST(Covariates, AClockThatDiffersIsNoGuessAboutCaches) {
  const auto slow = [](const PlaceOfRun& place) { return place.gpus == 1 ? 1.25 : 1; };
  const auto said = [&](double mhz) {
    const Compared compared(made_runs(slow, [&](const PlaceOfRun& place, Json& record) {
      record["provenance"]["machine_load"]["least_mhz"] = place.gpus == 1 ? mhz : 3000;
      record.erase("phases");
    }));
    std::string text = join(compared.study.warnings, "\n");
    for (const Finding& each : findings(compared.study, compared.comparison, compared.facts)) {
      text += '\n' + each.text;
    }
    return text;
  };
  expect_parts(said(3000), {"or does the share of each fit into its cache?"});
  expect_no_parts(said(2400), {"cache"});
  expect_parts(said(2400), {"the clock was 2400 MHz in 1 replica, and 3000 MHz in the other rows"});
}

std::vector<Json> one_after_the_other(bool has_rounds) {
  auto records = made_runs(
      no_effect, [](const PlaceOfRun&, Json&) {}, 5);
  std::ranges::stable_sort(records, {}, [](const Json& json) {
    return std::pair(json["layout"]["gpus"].get<int>(), json["round"].get<int>());
  });
  for (std::size_t i = 0; i < records.size(); ++i) {
    const int gpus = records[i]["layout"]["gpus"];
    records[i] = sample_record({.gpus = gpus,
                                .repeat = records[i]["repeat"],
                                .round = 1 + static_cast<int>(i) % 5,
                                .fit_seconds = 100.0 / gpus * std::exp(0.005 * double(i))});
    if (!has_rounds) records[i]["round"] = 0;
    records[i]["provenance"]["started_at"] = fmt::format("2026-11-21T03:{:02}:00Z", 2 * i);
  }
  return records;
}

// The machine slows by 0.5 % a run: no loss of a size, and no cause.
TEST(Covariates, SizesThatRanOneAfterTheOtherHaveNoCause) {
  for (const bool has_rounds : {false, true}) {
    const StoreContent content = canonical_content(one_after_the_other(has_rounds));
    const Study study = make_studies(content).at(0);
    expect_parts(join(study.warnings, "\n"),
                 {"sizes ran one after the other: size and time of day cannot be distinguished"});
    const Explanation explanation = std::move(explain(content, Base::matched).front());
    std::string text = explanation_text(explanation);
    for (const Finding& each : findings(study, explanation.comparison, explanation.facts)) {
      text += each.text + '\n';
    }
    expect_no_parts(text, {" points of efficiency: ", "replicas: compute", "computing a sample"});
    expect_parts(text, {"its cause may be the time of day"});
    EXPECT_TRUE(loss_plots(explanation).empty());
  }
  expect_no_parts(warnings_of(made_runs(no_effect, [](const PlaceOfRun&, Json&) {})),
                  {"time of day"});
}

// An own script that runs 1, 2, 4, 8, 1, 2, ... on a machine that slows by 0.5 % a run.
TEST(Covariates, AnOrderThatIsAlwaysTheSameIsTheTimeOfDayWhereTimesDrift) {
  const auto script = [](double drift) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<Json> records;
    for (int i = 0; i < 20; ++i) {
      const int gpus = 1 << (i % 4);
      const double seconds = 100.0 / gpus * std::exp(drift * i + 0.003 * normal(random));
      records.push_back(sample_record({.gpus = gpus, .repeat = 1 + i / 4, .fit_seconds = seconds}));
      records.back()["round"] = 0;
      records.back()["provenance"]["started_at"] = fmt::format("2026-11-21T03:{:02}:00Z", 2 * i);
    }
    return make_studies(canonical_content(records)).at(0);
  };
  const Study drifting = script(0.005);
  expect_parts(
      join(drifting.warnings, "\n"),
      {"set \"order\": \"interleaved\", as rows ran in the same order each time and times rise by "
       "2.0 % from one to the next: smaller differences may be the time of day"});
  EXPECT_TRUE(!drifting.causes.are_named(0.019) && drifting.causes.are_named(0.05));
  EXPECT_EQ(join(script(0).warnings, "\n"), "");
}

// Imported runs have no session; the base was run before all others.
TEST(Covariates, ABaseThatRanBeforeTheOthersIsNamed) {
  const auto records = made_runs(no_effect, [](const PlaceOfRun& place, Json& record) {
    record["kind"] = "imported";
    record["session"] = "";
    record["round"] = 0;
    if (place.gpus == 1) {
      record["provenance"]["started_at"] = fmt::format("2026-11-20T03:{:02}:00Z", place.minute);
    }
  });
  expect_parts(
      warnings_of(records),
      {"1 replica ran before the other rows: row and time of day cannot be distinguished"});
}

Side side_on(const std::string& name, const std::vector<std::string>& nodes, double seconds) {
  std::vector<Json> records;
  int night = 0;
  for (const std::string& node : nodes) {
    ++night;
    for (int round = 1; round <= 5; ++round) {
      records.push_back(sample_record({.repeat = 10 * night + round,
                                       .round = round,
                                       .fit_seconds = seconds * (1 + 0.001 * (round + night % 2)),
                                       .session = name + std::to_string(night)}));
      records.back()["provenance"]["hosts"] = {node};
    }
  }
  return load_side(name, canonical_content(records));
}

TEST(Covariates, ANodeThatOneSideHasToItselfDecidesNothing) {
  const Side baseline = side_on("baseline", {"node1", "node1", "node1", "node1", "node1"}, 10);
  for (const double seconds : {10.4, 10.0, 9.5}) {
    const Judgement judgement = judge(baseline, side_on("current", {"node7"}, seconds), {});
    EXPECT_EQ(judgement.verdict(), Verdict::undecided);
    expect_parts(judgement.checks.at(0).reason,
                 {"the current side ran only on node7, no run of the baseline did: build and node "
                  "cannot be distinguished"});
  }
  EXPECT_EQ(judge(baseline, side_on("current", {"node1"}, 10.4), {}).verdict(),
            Verdict::regression);
  // Nodes that change from night to night are in the noise of the nights.
  const Side many = side_on("baseline", {"a", "b", "c", "d", "e"}, 10);
  const Judgement judgement = judge(many, side_on("current", {"f"}, 10.4), {});
  EXPECT_EQ(judgement.verdict(), Verdict::regression);
  expect_parts(join(judgement.notes, "\n"), {"build and node cannot be distinguished"});
}

// Nights in spells of two nodes, one of which is 4 % slower.
std::vector<Json> nights_of_two_nodes(bool has_hosts, double shift) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  std::vector<Json> records;
  bool is_slow = false;
  for (int night = 0; night < 60; ++night) {
    if (random() % 3 == 0) is_slow = !is_slow;
    const std::string date = date_text(20454 + night);
    const double factor = (is_slow ? 1.04 : 1) * (night >= 40 ? 1 + shift : 1);
    records.push_back(sample_record({.repeat = night + 1,
                                     .round = 1,
                                     .fit_seconds = 10 * factor * std::exp(0.005 * normal(random)),
                                     .session = date}));
    records.back()["provenance"]["started_at"] = date + "T03:00:00Z";
    if (has_hosts) records.back()["provenance"]["hosts"] = {is_slow ? "node7" : "node1"};
  }
  return records;
}

TEST(Covariates, SpellsOfTwoNodesAreNoShifts) {
  const auto history = [](bool has_hosts, double shift) {
    return find_history(make_history(canonical_content(nights_of_two_nodes(has_hosts, shift)),
                                     {{HistoryMetric::time}, {}, {}}));
  };
  const History known = history(true, 0);
  EXPECT_TRUE(known.studies.at(0).events.empty());
  const NodeDifference& nodes = known.studies.at(0).series.at(0).series->node_differences.at(0);
  EXPECT_NEAR(std::abs(nodes.difference.mean), std::log(1.04), 0.005);
  EXPECT_LT(known.studies.at(0).series.at(0).found.noise, 0.008);
  expect_parts(full_text(history_document(known)), {"sessions on other nodes", " of 60 sessions"});
  const History shifted = history(true, 0.03);
  ASSERT_EQ(shifted.studies.at(0).events.size(), 1U);
  EXPECT_EQ(shifted.studies.at(0).series.at(0).found.shifts.at(0).at, 40U);
}

}  // namespace
}  // namespace paceline
