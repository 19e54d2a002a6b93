#include "analysis/findings/best.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/findings/findings.h"
#include "engine/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

Json json_of(const Study& study, const Best& best) {
  return Json::parse(to_json_text(best_document(study, best)));
}

// Runs of a point in rounds, each off by the factors.
void add(std::vector<Json>& records, int gpus, int cpus, double seconds,
         const std::vector<double>& factors) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const int round = static_cast<int>(i) + 1;
    records.push_back(sample_record({.gpus = gpus,
                                     .cpus_per_replica = cpus,
                                     .repeat = round,
                                     .fit_seconds = seconds * factors[i]}));
  }
}

struct Found {
  Study study;
  Best best;
};

Found found(const std::vector<Json>& records, double within) {
  Study study = make_studies(canonical_content(records)).at(0);
  Best best = find_best(study, within);
  return {std::move(study), std::move(best)};
}

const std::vector<double> kQuietRuns = {1.0, 1.004, 0.997, 1.002};
const std::vector<double> kQuieter = {1.001, 1.003, 0.998, 1.001};

TEST(Best, TheSmallestThatIsSurelyNear) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuieter);
  add(records, 2, 1, 51.5, kQuieter);
  add(records, 2, 2, 51, kQuieter);
  add(records, 4, 1, 50, kQuietRuns);
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.best.name, "4 replicas, 1 CPU each");
  EXPECT_EQ(best.smallest.name, "2 replicas, 1 CPU each");
  EXPECT_TRUE(best.undecided.empty());
  EXPECT_EQ(best.points.front().limit_verdict, LimitVerdict::beyond);
  EXPECT_EQ(best.points[1].over_best.kind, RatioKind::paired);
  EXPECT_NEAR(best.points[1].over_best.estimate.value, 1.03, 1e-3);
  EXPECT_LT(best.points[1].over_best.estimate.interval->high, 1.05);
  const Json json = json_of(study, best);
  EXPECT_EQ(json["smallest"]["gpus"], 2);
  EXPECT_EQ(json["smallest"]["cpus"], 2);
  EXPECT_EQ(json["decided"], true);
  EXPECT_EQ(json["points"].size(), 4U);
  const std::string text = best_text(study, best);
  expect_parts(text, {"smallest: 2 replicas, 1 CPU each\n", "51.54 s    +3.0 % ["});
}

TEST(Best, AnIntervalThatHoldsTheLimitDecidesNothing) {
  std::vector<Json> records;
  add(records, 1, 1, 52, {1.1, 0.9, 1.05, 0.95});
  add(records, 2, 1, 50, kQuietRuns);
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.smallest.row, best.best.row);
  ASSERT_EQ(best.undecided.size(), 1U);
  expect_parts(best_text(study, best), {"run more repeats"});
  EXPECT_EQ(json_of(study, best)["decided"], false);
}

// Five settings whose intervals overlap: none is the best.
TEST(Best, WhatIsIndistinguishableIsReported) {
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
  expect_parts(text, {"the 5 points cannot be distinguished at 95 %, tested together (2.2"});
  EXPECT_EQ(json_of(study, best)["alike"].size(), 4U);
  expect_no_parts(text, {"use the fastest"});
}

// One run of 2 replicas took 20 times as long. Its others take four times as long as 8 replicas.
TEST(Best, OneOutlierHidesNoDifference) {
  std::vector<Json> records;
  add(records, 1, 1, 100, {1.0, 1.01, 0.99, 1.005, 0.995});
  add(records, 2, 1, 50, {1.0, 0.99, 20, 1.01, 1.003});
  add(records, 8, 1, 12.5, {1.002, 0.99, 1.01, 1.0, 0.997});
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.best.name, "8 replicas");
  EXPECT_TRUE(best.alike.empty());
  EXPECT_TRUE(best.undecided.empty());
  expect_parts(best_text(study, best), {"fastest: 8 replicas: 12.5"});
}

// With the outlier, the interval of the means holds the limit; without, it is 10 % off.
TEST(Best, OneOutlierLeavesTheLimitDecided) {
  std::vector<Json> records;
  add(records, 2, 1, 55, {1.0, 1.001, 20, 0.999, 1.0005});
  add(records, 8, 1, 50, {1.001, 1.0, 0.999, 1.0005, 1.0});
  const auto [study, best] = found(records, 0.05);
  EXPECT_LT(best.points[0].over_best.estimate.interval->low, 1.05);
  ASSERT_TRUE(best.points[0].trimmed_over_best);
  EXPECT_NEAR(best.points[0].trimmed_over_best->value, 1.1, 0.002);
  EXPECT_EQ(best.points[0].limit_verdict, LimitVerdict::beyond);
}

// The outlier is a run of the faster point, so that its mean is not the least.
TEST(Best, AnOutlierOfTheFasterPointIsReported) {
  std::vector<Json> records;
  add(records, 4, 1, 25, {1.002, 0.99, 1.01, 1.0, 0.997});
  add(records, 8, 1, 22, {1.0, 0.99, 20, 1.01, 1.003});
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.best.name, "4 replicas");
  ASSERT_EQ(best.alike.size(), 1U);
  EXPECT_TRUE(best.alike[0].faster_but_for_outliers);
  expect_parts(best_text(study, best), {"8 replicas (faster without the extreme runs of both)"});
}

// A tuning study's report says the same, and misses no speed-up.
TEST(Best, AReportOfSettingsReportsWhichIsTheFastest) {
  std::vector<Json> records;
  for (const int bucket : {1, 4, 8}) {
    std::vector<Json> runs;
    add(runs, 2, 1, bucket == 4 ? 2.0 : 2.5, bucket == 1 ? kQuietRuns : kQuieter);
    for (Json& run : runs) {
      run["parameters"]["bucket_mb"] = bucket;
      records.push_back(run);
    }
  }
  const auto [study, comparison, facts] = Compared(records);
  const auto said = findings(study, comparison, facts);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].kind, FindingKind::one_session);
  EXPECT_EQ(said[1].kind, FindingKind::settings);
  expect_parts(said[1].text, {"bucket_mb: fastest: ", "bucket_mb 4: 2.00"});
  for (const BrokenRule& broken : broken_rules(study, comparison, facts)) {
    EXPECT_NE(broken.rule, 1) << format_sentence(broken);
  }
}

TEST(Best, TheFastestBeyondNoiseIsCalledSo) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuieter);
  add(records, 2, 1, 50, kQuietRuns);
  const auto [study, best] = found(records, 0.05);
  EXPECT_TRUE(best.alike.empty());
  const std::string text = best_text(study, best);
  expect_parts(text, {"fastest: 2 replicas: 50.04 s",
                      "no smaller point is certainly within 5 %: use the fastest"});
}

TEST(Best, FewerThanThreeRunsNeverDecide) {
  std::vector<Json> records;
  add(records, 1, 1, 50.1, {1, 1.0001});
  add(records, 2, 1, 50, {1, 1.0001});
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.points[0].limit_verdict, LimitVerdict::undecided);
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
  expect_parts(text, {"do not decide: 2 replicas\n",
                      "beyond by the means: 1 smaller point (fewer than 3 runs)"});
}

TEST(Best, RatesAreComparedWhereTheWorkGrows) {
  std::vector<Json> records;
  for (const auto& [gpus, rate] : {std::pair{1, 100.0}, {2, 190.0}, {4, 192.0}}) {
    for (int round = 1; round <= 3; ++round) {
      Json json = sample_record({.gpus = gpus, .repeat = round});
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
  add(records, 1, 1, 100, kQuietRuns);
  add(records, 2, 1, 51, kQuietRuns);
  add(records, 4, 1, 5, kQuietRuns);
  for (Json& json : records) {
    const bool reached = json["layout"]["gpus"] != 4;
    json["quality"]["until"] = {{"goal", "test_accuracy>=0.98"}, {"reached", reached}};
  }
  EXPECT_EQ(found(records, 0.05).best.best.name, "2 replicas");
  for (Json& json : records) json["quality"]["until"]["reached"] = false;
  EXPECT_THROW(found(records, 0.05), Error);
}

std::string format_sentence(const std::vector<Json>& records) {
  const auto [study, best] = found(records, 0.05);
  return fastest_sentence(study, best);
}

TEST(Best, DisturbedPointsAreLeftAside) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuietRuns);
  add(records, 2, 1, 60, kQuietRuns);
  add(records, 4, 1, 30, kQuietRuns);
  for (Json& json : records) json["flags"]["throttled"] = json["layout"]["gpus"] == 4;
  const auto [study, best] = found(records, 0.05);
  EXPECT_EQ(best.best.name, "2 replicas");
  EXPECT_EQ(best.points.size(), 2U);
  ASSERT_EQ(best.left_aside.size(), 1U);
  EXPECT_EQ(best.left_aside[0].name, "4 replicas");
  EXPECT_TRUE(fastest_sentence(study, best).ends_with("left aside: 1 point of only disturbed runs"))
      << fastest_sentence(study, best);
  EXPECT_EQ(json_of(study, best)["left_aside"][0]["name"], "4 replicas");

  for (Json& json : records) json["flags"]["throttled"] = json["layout"]["gpus"] != 1;
  expect_parts(format_sentence(records), {"the only point to judge: 1 replica"});
  for (Json& json : records) json["flags"]["throttled"] = true;
  const std::string all = format_sentence(records);
  expect_no_parts(all, {"fewer"});
  expect_parts(all, {"fastest by its mean: 4 replicas",
                     "not judged, as rows of only disturbed runs do not decide"});
}

// Replicas that do not communicate train nothing together.
TEST(Best, RunsThatAreSparedWorkAreNoAnswer) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuietRuns);
  add(records, 2, 1, 60, kQuietRuns);
  std::vector<Json> apart = records;
  for (Json& json : apart) {
    json["parameters"]["backend"] = "null";
    json["timing"]["fit_seconds"] = json["timing"]["fit_seconds"].get<double>() * 0.8;
  }
  std::vector<Json> both = records;
  both.insert(both.end(), apart.begin(), apart.end());
  const auto [study, best] = found(both, 0.05);
  EXPECT_EQ(study.rows[best.best.row].first().backend, "mpi");
  EXPECT_EQ(best.left_aside.size(), 2U);
  const Comparison comparison = compare(study, Base::best);
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    EXPECT_EQ(study.rows[comparison.speed_ups[i]->base].first().backend, "mpi");
    EXPECT_FALSE(study.rows[i].first().backend == "null" && comparison.best_of_size[i]);
  }
  EXPECT_EQ(found(apart, 0.05).best.best.name, "2 replicas") << "where all are, none is spared";
}

TEST(Best, PointsOfFewRunsAreNamed) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuietRuns);
  add(records, 2, 1, 50, kQuietRuns);
  add(records, 4, 1, 50.05, kQuieter);
  add(records, 8, 1, 50.5, {1});
  const auto [study, best] = found(records, 0.05);
  EXPECT_NE(fastest_sentence(study, best)
                .find("not judged, as rows of fewer than 3 runs do not decide: 8 replicas"),
            std::string::npos)
      << fastest_sentence(study, best);
  const Json json = json_of(study, best);
  EXPECT_EQ(json["decided"], false);
  EXPECT_EQ(json["unjudged"], Json::array({"8 replicas"}));
}

TEST(Best, TimesThatAreAlikeToTheLastDigitAreAlike) {
  std::vector<Json> records;
  add(records, 1, 1, 7.3, {1, 1, 1});
  add(records, 2, 1, 7.3, {1, 1, 1, 1, 1, 1, 1});
  expect_parts(format_sentence(records), {"the 2 points cannot be distinguished"});
}

TEST(Best, WhereSomeRunsReachedTheGoalItIsReported) {
  std::vector<Json> records;
  add(records, 1, 1, 100, kQuietRuns);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i]["quality"]["until"] = {{"goal", "test_accuracy>=0.98"}, {"reached", i > 0}};
  }
  expect_error(ErrorKind::input, {"in all of its runs (3 of 4 did)"},
               [&] { found(records, 0.05); });
}

// Points by their rounds: `shift` of a session or a point, and noise.
std::vector<Json> alike_points(std::mt19937_64& random, int points, int count, int rounds,
                               double shift) {
  std::normal_distribution<double> normal;
  std::vector<Json> records;
  for (int session = 0; session < count; ++session) {
    for (int bucket = 1; bucket <= points; ++bucket) {
      const double off = shift * normal(random);
      for (int round = 1; round <= rounds; ++round) {
        Json run = sample_record({.repeat = round,
                                  .fit_seconds = 10 * std::exp(off + 0.01 * normal(random)),
                                  .session = "s" + std::to_string(session)});
        run["parameters"]["bucket_mb"] = bucket;
        records.push_back(run);
      }
    }
  }
  return records;
}

// The reference is the fastest of the sample, so tests of it are those of all pairs.
TEST(Best, EqualPointsAreSeldomDistinguished) {
  std::mt19937_64 random(8);
  constexpr int kStudies = 200, kPoints = 10;
  int wrong = 0;
  for (int study = 0; study < kStudies; ++study) {
    const Best best = found(alike_points(random, kPoints, 1, 5, 0), 0.05).best;
    wrong += best.alike.size() + 1 < kPoints ? 1 : 0;
  }
  EXPECT_LE(wrong, 0.05 * kStudies + 2 * std::sqrt(0.05 * kStudies));
}

TEST(Best, PooledSessionsAreTheUnit) {
  std::mt19937_64 random(9);
  constexpr int kStudies = 100;
  int wrong = 0;
  for (int i = 0; i < kStudies; ++i) {
    const auto records = alike_points(random, 2, 3, 5, 0.03);
    const Study study = make_studies(canonical_content(records), {}, {}, Pooling::always).at(0);
    wrong += find_best(study, 0.05).alike.empty() ? 1 : 0;
  }
  EXPECT_LE(wrong, 0.05 * kStudies + 3 * std::sqrt(0.05 * kStudies));
}

TEST(Best, OfTwoMachinesEachHasItsFastest) {
  std::vector<Json> records;
  for (const char* machine : {"A", "B"}) {
    for (const int bucket : {1, 8}) {
      std::vector<Json> runs;
      add(runs, 2, 1, bucket == 1 ? 5 : 4, kQuietRuns);
      for (Json& run : runs) {
        run["parameters"]["bucket_mb"] = bucket;
        run["provenance"]["cpu_model"] = machine;
        run["session"] = machine;
        records.push_back(run);
      }
    }
  }
  const auto [study, comparison, facts] = Compared(records);
  std::vector<std::string> said;
  for (const Finding& finding : findings(study, comparison, facts)) {
    if (finding.kind == FindingKind::settings) said.push_back(finding.text);
  }
  ASSERT_EQ(said.size(), 1U);
  expect_parts(said[0], {"A", "B", "bucket_mb 8: 4"});
}

}  // namespace
}  // namespace paceline
