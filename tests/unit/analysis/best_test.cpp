#include "analysis/best.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/findings.h"
#include "analysis/rules.h"
#include "engine/core/error.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

using testing::content_of;
using testing::sample_record;

// Runs of a point in rounds, each off by the factors.
void add(std::vector<Json>& records, int gpus, int cpus, double seconds,
         const std::vector<double>& factors) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const int round = static_cast<int>(i) + 1;
    records.push_back(sample_record({.gpus = gpus,
                                     .cpus_per_replica = cpus,
                                     .repeat = round,
                                     .round = round,
                                     .fit_seconds = seconds * factors[i]}));
  }
}

struct Found {
  Study study;
  Best best;
};

Found found(const std::vector<Json>& records, double within) {
  Study study = make_studies(content_of(records)).at(0);
  Best best = find_best(study, within);
  return {std::move(study), std::move(best)};
}

const std::vector<double> kQuiet = {1.0, 1.004, 0.997, 1.002};
const std::vector<double> kQuieter = {1.001, 1.003, 0.998, 1.001};

TEST(Best, TheSmallestThatIsSurelyNear) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuieter);
  add(records, 2, 1, 51.5, kQuieter);
  add(records, 2, 2, 51, kQuieter);
  add(records, 4, 1, 50, kQuiet);
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.best.name, "4 replicas, 1 CPU each");
  EXPECT_EQ(best.smallest.name, "2 replicas, 1 CPU each");
  EXPECT_TRUE(best.undecided.empty());
  EXPECT_EQ(best.points.front().nearness, Nearness::beyond);
  EXPECT_EQ(best.points[1].over_best.kind, RatioKind::paired);
  EXPECT_NEAR(best.points[1].over_best.estimate.value, 1.03, 1e-3);
  EXPECT_LT(best.points[1].over_best.estimate.interval->high, 1.05);
  const Json json = best_json(study, best);
  EXPECT_EQ(json["smallest"]["gpus"], 2);
  EXPECT_EQ(json["smallest"]["cpus"], 2);
  EXPECT_EQ(json["decided"], true);
  EXPECT_EQ(json["points"].size(), 4U);
  EXPECT_NE(best_text(study, best).find("2 replicas, 1 CPU each: 51.54 s, +3.0 % ["),
            std::string::npos)
      << best_text(study, best);
}

TEST(Best, AnIntervalThatHoldsTheLimitDecidesNothing) {
  std::vector<Json> records;
  add(records, 1, 1, 52, {1.1, 0.9, 1.05, 0.95});
  add(records, 2, 1, 50, kQuiet);
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.smallest.row, best.best.row);
  ASSERT_EQ(best.undecided.size(), 1U);
  EXPECT_NE(best_text(study, best).find("run more repeats"), std::string::npos);
  EXPECT_EQ(best_json(study, best)["decided"], false);
}

// Five settings whose intervals overlap: none is the best.
TEST(Best, WhatCannotBeToldApartIsSaidSo) {
  std::vector<Json> records;
  const std::vector<double> noise = {1.1, 0.9, 1.05, 0.95};
  for (const int bucket : {1, 2, 4, 8, 16}) {
    std::vector<Json> runs;
    std::vector<double> turned = noise;
    std::rotate(turned.begin(), turned.begin() + bucket % 4, turned.end());
    add(runs, 2, 1, 2.2 + 0.02 * bucket, turned);
    for (Json& run : runs) {
      run["parameters"]["bucket_mb"] = bucket;
      records.push_back(run);
    }
  }
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.alike.size(), 4U);
  const std::string text = best_text(study, best);
  EXPECT_NE(text.find("the 5 points cannot be told apart at 95 %, tested together (2.2"),
            std::string::npos)
      << text;
  EXPECT_EQ(best_json(study, best)["alike"].size(), 4U);
}

// A tuning study's report says the same, and misses no speed-up.
TEST(Best, AReportOfSettingsSaysWhichIsTheFastest) {
  std::vector<Json> records;
  for (const int bucket : {1, 4, 8}) {
    std::vector<Json> runs;
    add(runs, 2, 1, bucket == 4 ? 2.0 : 2.5, bucket == 1 ? kQuiet : kQuieter);
    for (Json& run : runs) {
      run["parameters"]["bucket_mb"] = bucket;
      records.push_back(run);
    }
  }
  const Study study = make_studies(content_of(records)).at(0);
  const Comparison comparison = compare(study, Base::matched);
  std::vector<RowFacts> facts;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    facts.push_back(row_facts(study, comparison, i));
  }
  const auto said = findings(study, comparison, facts);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].kind, FindingKind::settings);
  EXPECT_NE(said[0].text.find("bucket_mb: fastest: "), std::string::npos) << said[0].text;
  EXPECT_NE(said[0].text.find("bucket_mb 4: 2.00"), std::string::npos) << said[0].text;
  for (const BrokenRule& broken : broken_rules(study, comparison, facts)) {
    EXPECT_NE(broken.rule, 1) << sentence_of(broken);
  }
}

TEST(Best, TheFastestBeyondNoiseIsCalledSo) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuieter);
  add(records, 2, 1, 50, kQuiet);
  const auto [study, best] = found(records, 0.05);
  EXPECT_TRUE(best.alike.empty());
  const std::string text = best_text(study, best);
  EXPECT_NE(text.find("fastest: 2 replicas: 50.04 s"), std::string::npos) << text;
  EXPECT_NE(text.find("no smaller point is certainly within 5 %: use the fastest"),
            std::string::npos)
      << text;
}

TEST(Best, FewerThanThreeRunsNeverDecide) {
  std::vector<Json> records;
  add(records, 1, 1, 50.1, {1, 1.0001});
  add(records, 2, 1, 50, {1, 1.0001});
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.points[0].nearness, Nearness::undecided);
  EXPECT_TRUE(best.points[0].over_best.estimate.interval);
}

TEST(Best, ASingleRunFarFromTheBestIsNotListed) {
  std::vector<Json> records;
  add(records, 1, 1, 100, {1});
  add(records, 2, 1, 51, {1});
  add(records, 4, 1, 50, {1});
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.smallest.name, "4 replicas");
  EXPECT_EQ(best.by_mean.name, "2 replicas");
  EXPECT_EQ(best.undecided.size(), 2U);
  const std::string text = best_text(study, best);
  EXPECT_NE(text.find("  2 replicas: 51 s, +2.0 % over the best, 1 run, undecided"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("  1 replica:"), std::string::npos) << text;
  EXPECT_NE(text.find("1 smaller point of fewer than 3 runs"), std::string::npos) << text;
}

TEST(Best, RatesAreComparedWhereTheWorkGrows) {
  std::vector<Json> records;
  for (const auto& [gpus, rate] : {std::pair{1, 100.0}, {2, 190.0}, {4, 192.0}}) {
    for (int round = 1; round <= 3; ++round) {
      Json json = sample_record({.gpus = gpus, .repeat = round, .round = round});
      json["throughput"] = {{"samples", 640 * gpus}, {"steps", 10}, {"samples_per_second", rate}};
      records.push_back(json);
    }
  }
  const auto [study, best] = found(records, 0.05);
  EXPECT_TRUE(best.rates);
  EXPECT_EQ(best.best.name, "4 replicas");
  EXPECT_EQ(best.smallest.name, "2 replicas");
}

TEST(Best, ARunThatMissedItsGoalIsNoAnswer) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuiet);
  add(records, 2, 1, 51, kQuiet);
  add(records, 4, 1, 5, kQuiet);
  for (Json& json : records) {
    const bool reached = json["layout"]["gpus"] != 4;
    json["quality"]["until"] = {{"goal", "test_accuracy>=0.98"}, {"reached", reached}};
  }
  EXPECT_EQ(found(records, 0.05).best.best.name, "2 replicas");
  for (Json& json : records) json["quality"]["until"]["reached"] = false;
  EXPECT_THROW(found(records, 0.05), Error);
}

}  // namespace
}  // namespace paceline
