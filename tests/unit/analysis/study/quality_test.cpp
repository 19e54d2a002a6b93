// A speed-up counts where the network is as good as the base's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <sstream>

#include "analysis/explain/explain.h"
#include "analysis/findings/best.h"
#include "analysis/report.h"
#include "analysis/study/comparison.h"
#include "analysis/table/sheet.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

std::string make_report(const std::string& table, Format format = Format::markdown) {
  ReportOptions options;
  options.format = format;
  std::ostringstream out;
  write_report({std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference" / table}, options,
               out);
  return out.str();
}

// Kempner's page calls 64 GPUs 76.8 % efficient, where top-1 fell from 75.4 to 64.2 %.
TEST(QualityHeld, APublishedTableReportsWhatItsSpeedUpsAreOf) {
  const std::string report = make_report("kempner-resnet50");
  expect_parts(report, {"| (49.12) | (76.8 %) |", "| 1.97 | 98.6 % |",
                        "5 rows have lower accuracy than their base"});
  expect_no_parts(report, {"Largest mean speed-up: 49"});
  EXPECT_EQ(report.find("for 2, 4, 8"), std::string::npos) << "findings leave them out" << report;
  expect_no_parts(make_report("cassava-resnet50"), {"lower accuracy"});
}

// Five runs of one and of four replicas, which are as accurate as `accuracy`.
std::vector<Json> study_of_accuracy(double accuracy) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    for (const int gpus : {1, 2, 4}) {
      Json json = sample_record({.gpus = gpus,
                                 .repeat = round,
                                 .fit_seconds = 20.0 / gpus * (1 + 0.002 * ((round + gpus) % 3))});
      json["quality"]["test_accuracy"] = gpus == 4 ? accuracy : 0.97;
      records.push_back(json);
    }
  }
  return records;
}

TEST(QualityHeld, ItsBracketKeepsItsUnit) {
  const std::string text = to_text(report_document({report_section(study_of_accuracy(0.95))}));
  expect_parts(text, {"(100.0 %)"});
}

TEST(QualityHeld, ExplainMarksTheRowAndLeavesItOutOfTheSeries) {
  const auto explained = explain(canonical_content(study_of_accuracy(0.95)), Base::matched);
  const std::string text = explanation_text(explained.at(0));
  expect_parts(text, {"1 row has lower accuracy than its base: 4 replicas (95.00 % beside 97.00 "
                      "%)",
                      "(100.0 %)", "4 replicas (lower accuracy): "});
  expect_no_parts(text, {"for 2, 4 replicas"});
}

// `accuracies` of three runs of each bucket, which is the faster, the larger it is.
std::vector<Json> settings_of(const std::map<int, std::vector<double>>& accuracies, int gpus = 2) {
  std::vector<Json> records;
  for (const auto& [bucket, of_runs] : accuracies) {
    for (int round = 1; round <= static_cast<int>(of_runs.size()); ++round) {
      Json json = sample_record({.gpus = gpus,
                                 .repeat = round,
                                 .fit_seconds = (20.0 - bucket) / gpus + 0.01 * (round % 2)});
      json["parameters"]["bucket_mb"] = bucket;
      json["quality"]["test_accuracy"] = of_runs[static_cast<std::size_t>(round) - 1];
      records.push_back(json);
    }
  }
  return records;
}

const std::vector<double> kGood = {0.970, 0.971, 0.969}, kBad = {0.900, 0.901, 0.899},
                          kDiverged = {0.970, 0.971, 0.1}, kOpen = {0.958, 0.965, 0.970};

TEST(QualityHeld, TheFastestTrainsAsWellAsTheOthers) {
  const std::string text =
      findings_text(report_section(settings_of({{1, kGood}, {4, kGood}, {8, kBad}})));
  expect_parts(
      text,
      {"fastest: 2 replicas, bucket_mb 4: 8.", "left aside: 1 point that trained worse",
       "of these faster: 2 replicas, bucket_mb 8: 6.", "(lower accuracy, 90.00 % beside 97.00 %)"});
  expect_parts(findings_text(report_section(settings_of({{1, kGood}, {8, kDiverged}}))),
               {"the only point to judge: 2 replicas, bucket_mb 1",
                "(far lower accuracy in 1 of 3 runs, 10.0, 97.0, 97.1 % beside 96.9, 97.0, 97.1 %)",
                "cannot tell whether 1 row trained as well: 2 replicas, bucket_mb 8 (10.0, "});
  expect_parts(
      findings_text(report_section(settings_of({{1, kGood}, {8, kOpen}}))),
      {"fastest: 2 replicas, bucket_mb 8: 6.", "; cannot tell whether it trained as well: 95.8, "});
}

// Each setting has a base of its own, which is as good or as bad.
TEST(QualityHeld, ABaseOfItsOwnHidesNoWorseNetwork) {
  std::vector<Json> records = settings_of({{1, kGood}, {8, kBad}}, 1);
  const auto larger = settings_of({{1, kGood}, {8, kBad}}, 4);
  records.insert(records.end(), larger.begin(), larger.end());
  const Study study = make_studies(canonical_content(records)).at(0);
  const Section section = report_section(records);
  expect_parts(section.headline, {"4 replicas, bucket_mb 1"});
  expect_parts(findings_text(section),
               {"2 rows have lower accuracy than the row that trained best"});
  expect_parts(best_text(study, find_best(study, 0.05)), {"fastest: 4 replicas, bucket_mb 1: 4."});
  const std::string sheet = full_text(sheet_document(study, Base::matched, 0.7));
  expect_parts(sheet,
               {"4 replicas on 1 node: the largest size", "series this is mpi, bucket_mb 1;"});
}

TEST(QualityHeld, ADoubtIsInEachAnswer) {
  std::vector<Json> records = settings_of({{1, kGood}}, 1);
  const auto larger = settings_of({{1, kOpen}}, 4);
  records.insert(records.end(), larger.begin(), larger.end());
  const Study study = make_studies(canonical_content(records)).at(0);
  const Section section = report_section(records);
  const std::string doubt = "cannot tell whether it trained as well: 95.8, 96.5, 97.0 %";
  expect_parts(section.headline, {doubt});
  EXPECT_EQ(cell(section, 1, "verdict").text, "faster; accuracy unclear");
  expect_parts(best_text(study, find_best(study, 0.05)), {doubt});
  expect_parts(full_text(sheet_document(study, Base::matched, 0.7)), {doubt});
}

// In weak scaling more replicas train on more samples.
TEST(QualityHeld, MoreWorkIsNoBetterTraining) {
  std::vector<Json> records;
  for (int repeat = 1; repeat <= 3; ++repeat) {
    for (const int gpus : {1, 2, 4}) {
      Json json = sample_record({.gpus = gpus, .repeat = repeat, .fit_seconds = 20 + 0.01 * gpus});
      json["parameters"].erase("epochs");
      json["parameters"]["steps"] = 100;
      json["throughput"]["steps"] = 100;
      json["throughput"]["samples"] = 6400 * gpus;
      json["throughput"]["samples_per_second"] = 320 * gpus;
      json["quality"]["test_accuracy"] = 0.8 + 0.03 * gpus + 0.001 * repeat;
      records.push_back(json);
    }
  }
  const Study study = make_studies(canonical_content(records)).at(0);
  ASSERT_EQ(study.scaling, Scaling::weak);
  EXPECT_TRUE(find_best(study, 0.05).left_aside.empty());
}

// Of five runs with 1 % of noise; the first is slower by `slower`.
std::vector<Json> equal_settings(std::mt19937_64& random, int settings, double slower) {
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<Json> records;
  for (int bucket = 1; bucket <= settings; ++bucket) {
    for (int round = 1; round <= 5; ++round) {
      Json json =
          sample_record({.gpus = 2, .repeat = round, .fit_seconds = 10 * std::exp(noise(random))});
      if (bucket == 2)
        json["timing"]["fit_seconds"] = json["timing"]["fit_seconds"].get<double>() * (1 + slower);
      json["parameters"]["bucket_mb"] = bucket;
      records.push_back(json);
    }
  }
  return records;
}

TEST(Verdicts, OfSettingsAreTestedTogether) {
  constexpr int kStudies = 100;
  for (const int settings : {4, 16}) {
    std::mt19937_64 random(6);
    int wrong = 0, found = 0;
    for (int study = 0; study < kStudies; ++study) {
      const Compared equal(equal_settings(random, settings, 0), {"bucket_mb", "1"});
      wrong += std::ranges::any_of(equal.comparison.speed_ups, [](const auto& speed_up) {
        return speed_up->verdict == SpeedVerdict::faster ||
               speed_up->verdict == SpeedVerdict::slower;
      });
      const Compared unlike(equal_settings(random, settings, 0.05), {"bucket_mb", "1"});
      found += std::ranges::count(unlike.comparison.speed_ups, SpeedVerdict::slower,
                                  [](const auto& speed_up) { return speed_up->verdict; }) > 0;
    }
    EXPECT_LE(wrong, 0.05 * kStudies + 2 * std::sqrt(0.05 * kStudies)) << settings;
    EXPECT_GE(found, 0.9 * kStudies) << settings;
  }
}

// Four of five runs met a busy machine: what is common to them is no measure of the point.
TEST(CalmerRatios, OfRowsOnABusyMachineAreThoseOfQuietRuns) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    records.push_back(sample_record({.repeat = round, .fit_seconds = 20 + 0.01 * round}));
    const bool is_busy = round > 1;
    records.push_back(sample_record(
        {.gpus = 2, .repeat = round, .fit_seconds = (is_busy ? 13 : 10) + 0.01 * round}));
    records.back()["provenance"]["machine_load"] = {{"busy", is_busy}};
  }
  const std::string text = findings_text(report_section(records));
  expect_parts(text, {"without runs on a busy machine: 2 replicas: speed-up 2.00 (1 run)"});
  expect_no_parts(text, {"trimmed"});
}

}  // namespace
}  // namespace paceline
