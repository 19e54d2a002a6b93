// Which steps the costs are of, and what is said of steps alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "engine/facts/rank.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/gzipped.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

constexpr int kSteps = 100, kWarmup = 10;
constexpr double kStep = 0.1;

// Weak scaling: the first steps of two replicas are slow, the others as fast as of one.
double next_step(int gpus, int step) {
  return gpus > 1 && step < kWarmup ? 5 * kStep : kStep;
}

Json weak_record(int gpus, int repeat) {
  double seconds = 0;
  for (int step = 0; step < kSteps; ++step) seconds += next_step(gpus, step);
  Json record = sample_record({.gpus = gpus, .repeat = repeat, .fit_seconds = seconds});
  record["parameters"].erase("epochs");
  record["parameters"]["steps"] = kSteps;
  record["throughput"] = {{"samples_per_second", 64 * gpus / kStep},
                          {"warmup_steps_excluded", kWarmup},
                          {"samples", 64 * kSteps * gpus},
                          {"steps", kSteps}};
  for (Json& rank : record["phases"]) {
    rank = {{"input", 0},     {"forward", kSteps * kStep},
            {"backward", 0},  {"communication", gpus > 1 ? seconds - kSteps * kStep : 0.0},
            {"update", 0},    {"other", 0},
            {"step", seconds}};
  }
  return record;
}

std::string find_samples(int gpus) {
  std::string lines;
  for (int step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < gpus; ++rank) {
      lines += fmt::format(
          "{{\"rank\":{},\"step\":{},\"input\":0,\"forward\":{},\"communication\":{}}}\n", rank,
          step, kStep, next_step(gpus, step) - kStep);
    }
  }
  return gzipped(lines);
}

TEST(ExplainSteps, RatesAreHeldAgainstTheStepsThatTheyAreOf) {
  const TemporaryFolder folder;
  const Store store(folder / "study");
  for (int repeat = 1; repeat <= 3; ++repeat) {
    for (const int gpus : {1, 2}) {
      store.write("gpus=" + std::to_string(gpus), repeat, weak_record(gpus, repeat),
                  find_samples(gpus));
    }
  }
  const auto all = explain(load_store(folder / "study"), Base::matched);
  const PointExplanation& point = all.at(0).points.at(1);
  ASSERT_TRUE(point.lost);
  EXPECT_NEAR(point.lost->value(), 0, 1e-6);
  EXPECT_EQ(point.label, "");
  EXPECT_NEAR(*point.residual, 0, 1e-6);
  expect_parts(explanation_text(all.at(0)), {"time that no phase accounts for"});
}

// Without the samples only totals of all steps are known, and nothing is said to be lost.
TEST(ExplainSteps, TotalsOfAllStepsExplainNoRateOfSome) {
  std::vector<Json> records;
  for (int repeat = 1; repeat <= 3; ++repeat) {
    for (const int gpus : {1, 2}) records.push_back(weak_record(gpus, repeat));
  }
  const auto all = explain(canonical_content(records), Base::matched);
  const PointExplanation& point = all.at(0).points.at(1);
  EXPECT_FALSE(point.lost);
  EXPECT_EQ(point.label, "");
  expect_parts(point.because, {"its costs are not known"});
}

// Ranks without communication end their steps when they like, so no one waits for the slowest.
TEST(ExplainSteps, RanksThatTrainApartAreNotSerialized) {
  Json record = sample_record({.gpus = 2, .backend = "null"});
  record["phases"][0]["forward"] = 8.0;
  record["phases"][1]["forward"] = 2.0;
  for (Json& rank : record["phases"]) rank["communication"] = 0.0;
  const auto all = explain(canonical_content({record}), Base::matched);
  const PointExplanation& point = all.at(0).points.at(0);
  ASSERT_TRUE(point.step);
  EXPECT_NEAR(point.step->serialization, 1, 1e-9);
  EXPECT_NEAR(point.step->load_balance, 1, 1e-9);
}

// Of a rank of many; one computes longer than the others, which wait for it.
Json rank_phases(int rank) {
  const double compute = rank == 2049 ? 9 : 6, wait = 9.5 - compute;
  return {{"input", 0.25},
          {"forward", compute / 2},
          {"backward", compute / 2},
          {"communication", wait},
          {"update", 0},
          {"other", 0.25},
          {"step", 10}};
}

std::vector<std::string> make_report(int gpus, bool with_steps, std::size_t& record_bytes) {
  Json json = sample_record({.gpus = gpus});
  json["throughput"]["steps"] = 2;
  json["phases"] = Json::array();
  json["timing"]["step_seconds"] = Json::array();
  std::string lines;
  for (int rank = 0; rank < gpus; ++rank) {
    json["phases"].push_back(rank_phases(rank % 4096));
    json["timing"]["step_seconds"].push_back({{"p50", rank == 2049 ? 5.5 : 5.0}});
    Json half = rank_phases(rank);
    for (Json& seconds : half) seconds = seconds.get<double>() / 2;
    half["rank"] = rank;
    for (int step = 0; step < 2; ++step) {
      half["step"] = step;
      lines += half.dump() + "\n";
    }
  }
  const TemporaryFolder folder;
  const auto file = Store(folder / "study").write("p", 1, json, with_steps ? gzipped(lines) : "");
  record_bytes = std::filesystem::file_size(file);
  const auto content = load_store(folder / "study");
  EXPECT_TRUE(content.rejected.empty());
  EXPECT_TRUE(*content.records.at(0)->ranks);
  const auto all = explain(content, Base::matched);
  const PointExplanation& point = all.at(0).points.at(0);
  if (!point.step) return {"no step"};
  const Run& run = point.facts->run();
  return {fmt::format("{:.4f}", point.step->load_balance),
          fmt::format("{:.4f}", run.phase_sum->communication / run.phase_sum->step),
          fmt::format("{} {:g}", run.phase_ranks, *run.step_seconds)};
}

// Means over ranks, and the slowest: 1 of 4096 computed 9 s, the others 6.
TEST(ExplainSteps, ManyRanksAreExplainedByTheirSpread) {
  std::size_t bytes = 0;
  const std::vector<std::string> expected{fmt::format("{:.4f}", (6 + 3.0 / 4096) / 9),
                                          fmt::format("{:.4f}", (3.5 - 3.0 / 4096) / 10),
                                          "4096 5.5"};
  EXPECT_EQ(make_report(4096, false, bytes), expected);
  EXPECT_LE(bytes, kRecordLimitBytes);
  EXPECT_EQ(make_report(4096, true, bytes), expected);
}

std::string point_label(double input, double launch, double compute) {
  Json record = sample_record();
  record["phases"][0] = {{"input", input},     {"forward", compute}, {"backward", 0},
                         {"communication", 0}, {"update", 0},        {"other", launch},
                         {"step", 100}};
  return explain(canonical_content({record}), Base::matched).at(0).points.at(0).label;
}

TEST(ExplainSteps, ASmallPartIsNoLabel) {
  EXPECT_EQ(point_label(6, 5, 89), "compute");
  EXPECT_EQ(point_label(10, 0, 90), "input");
  EXPECT_EQ(point_label(9, 30, 61), "launch");
}

}  // namespace
}  // namespace paceline
