// A replay of records that follow a known law: weak scaling over a ring.
#include "analysis/predict/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/predict/prediction.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/gzipped.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

constexpr double kForward = 0.02, kBackward = 0.04, kUpdate = 0.011;
constexpr double kFirst = 1e6, kSecond = 1e5;  // bytes of the two buckets
constexpr int kSteps = 50, kBatch = 32;

struct StepLaw {
  double alpha = 1e-4, bytes_per_second = 1e8, wire = 1;
  double sum(double bytes, int p) const {
    if (p == 1) return 0;
    return alpha * (p == 2 ? 1 : 2 * (p - 1)) + 2 * bytes * wire * (p - 1) / p / bytes_per_second;
  }
  // The first bucket is ready after a quarter of backward, the second at its end.
  double step(int p, double batch = kBatch) const {
    const double forward = kForward * batch / kBatch, backward = kBackward * batch / kBatch;
    const double end = forward + backward;
    if (p == 1) return end + kUpdate;
    const double first = forward + backward / 4 + sum(kFirst, p);
    const double second = std::max(first, end) + sum(kSecond, p);
    const double updated = std::max(first, end) + kUpdate * kFirst / (kFirst + kSecond);
    return std::max(updated, second) + kUpdate * kSecond / (kFirst + kSecond);
  }
};

Json law_record(const StepLaw& law, int gpus, int repeat, double noise = 1) {
  const double step = law.step(gpus) * noise;
  Json record = sample_record({.gpus = gpus, .repeat = repeat, .fit_seconds = 1 + step * kSteps});
  record["parameters"].erase("epochs");
  record["parameters"]["steps"] = kSteps;
  record["parameters"]["batch_per_replica"] = kBatch;
  record["parameters"]["bucket_mb"] = 0.96;
  record["parameters"]["last_bucket_mb"] = 0.1;
  record["layout"]["nodes"] = gpus;
  record["throughput"] = {{"samples_per_second", kBatch * gpus / step},
                          {"warmup_steps_excluded", 0},
                          {"samples", kBatch * gpus * kSteps},
                          {"steps", kSteps}};
  for (Json& rank : record["phases"]) {
    rank = {{"input", 0},
            {"forward", kForward * kSteps},
            {"backward", kBackward * kSteps},
            {"communication", std::max(0.0, step - kForward - kBackward - kUpdate) * kSteps},
            {"communication_hidden", 0},
            {"update", kUpdate * kSteps},
            {"other", 0},
            {"step", step * kSteps}};
  }
  record["plan"] = {{"bucket_bytes", {kFirst, kSecond}},
                    {"global_batch", kBatch * gpus},
                    {"overlapped", true},
                    {"gradients",
                     {{{"bytes", kFirst}, {"backward_seconds", kBackward / 4}},
                      {{"bytes", kFirst + kSecond}, {"backward_seconds", kBackward}}}}};
  return record;
}

Json bench_record(const StepLaw& law, int gpus) {
  Json record = sample_record({.gpus = gpus});
  record["kind"] = "collective";
  record["layout"]["nodes"] = gpus;
  record["parameters"].erase("workload");
  Json rows = Json::array();
  for (const double bytes : {4e3, 6.4e4, 1e6, 4e6}) {
    rows.push_back({{"bytes", bytes}, {"count", bytes / 4}, {"seconds", law.sum(bytes, gpus)}});
  }
  record["collective"] = {{"operation", "all_reduce"}, {"dtype", "f32"}, {"rows", rows}};
  return record;
}

// Keeps what a replay points into.
struct Made {
  Study study;
  ReplaySources sources;
};

Made make_replay(const std::vector<Json>& records, const std::vector<Json>& collectives,
                 Scaling scaling = Scaling::weak) {
  Made made;
  made.study = make_studies(canonical_content(records)).at(0);
  for (const Row& row : made.study.rows) made.sources.rows.push_back(&row);
  made.sources.scaling = scaling;
  for (const Record& record : canonical_content(collectives).records) {
    made.sources.collectives.push_back(make_run(record));
  }
  return made;
}

std::vector<Json> run_values(const StepLaw& law, const std::vector<int>& sizes) {
  std::vector<Json> records;
  const double noise[] = {1, 1.01, 0.99};
  for (const int gpus : sizes) {
    for (int repeat = 1; repeat <= 3; ++repeat) {
      records.push_back(law_record(law, gpus, repeat, noise[repeat - 1]));
    }
  }
  return records;
}

TEST(Replay, LargerRingsFollowTheLaw) {
  const StepLaw law;
  const Made made = make_replay(run_values(law, {2, 4}), {bench_record(law, 2)});
  const Replay replay(made.sources);
  ASSERT_EQ(replay.why_not(), "");
  for (const int gpus : {8, 16, 64}) {
    const ReplayedStep step = replay.at(gpus);
    EXPECT_NEAR(step.step_seconds / law.step(gpus), 1, 0.02) << gpus;
    EXPECT_NEAR(step.samples_per_second * step.step_seconds, kBatch * gpus, 1e-6);
    EXPECT_LT(step.samples_per_second_interval.low, step.samples_per_second);
    EXPECT_GT(step.samples_per_second_interval.high, step.samples_per_second);
    ASSERT_TRUE(step.fit_seconds);
    EXPECT_NEAR(*step.fit_seconds, 1 + kSteps * step.step_seconds, 0.05);
  }
}

TEST(Replay, WhatIfMatchesTheLawWithThatChange) {
  const StepLaw law;
  const Made made = make_replay(run_values(law, {2, 4}), {bench_record(law, 2)});
  const Replay replay(made.sources);
  StepLaw other = law;
  other.bytes_per_second *= 2;
  EXPECT_NEAR(replay.at(16, parse_what_if("links=2x")).step_seconds / other.step(16), 1, 0.02);
  other = law;
  other.wire = 0.5;
  const WhatIf wire = parse_what_if("precision-on-the-wire=bf16");
  EXPECT_NEAR(replay.at(16, wire).step_seconds / other.step(16), 1, 0.02);
  // One bucket, which is ready at the end of backward.
  const double joined = kForward + kBackward + kUpdate + law.sum(kFirst + kSecond, 16);
  EXPECT_LT(replay.at(16, parse_what_if("bucket_mb=8")).step_seconds, joined * 1.1);
}

TEST(Replay, WithoutCollectivesTheStepsReportAndANoteIsMarked) {
  const StepLaw law;
  const Made made = make_replay(run_values(law, {2, 4}), {});
  const Replay replay(made.sources);
  ASSERT_EQ(replay.why_not(), "");
  ASSERT_FALSE(replay.notes().empty());
  expect_parts(replay.notes()[0], {"estimated"});
}

TEST(Replay, ADescribedNetworkIsUsedAndTooManyReplicasForItAreRefused) {
  const StepLaw law;
  Made made = make_replay(run_values(law, {2, 4}), {bench_record(law, 2)});
  made.sources.network = parse_network(
      R"({"levels": [{"level": "node", "units": 32, "latency_seconds": 1e-4,
                      "bytes_per_second": 1e8}]})",
      "links.json");
  const Replay replay(made.sources);
  EXPECT_NEAR(replay.at(16).step_seconds / law.step(16), 1, 0.02);
  expect_error(ErrorKind::usage, {"32"}, [&replay] { replay.at(64); });
}

TEST(Replay, WhatIsNotFiniteIsNotPredicted) {
  const StepLaw law;
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4}) records.push_back(law_record(law, gpus, 1));
  PredictOptions options;
  options.gpus = {8};
  options.network = parse_network(
      R"({"levels": [{"level": "node", "latency_seconds": 1e-4, "bytes_per_second": 1e8}]})",
      "links.json");
  options.predictor = PredictorChoice::replay;
  EXPECT_GT(predict(canonical_content(records), options).at(0).sizes.back().value.value, 0);
  options.network->levels[0].bytes_per_second = 1e-300;
  options.network->levels[0].latency_seconds = 1e308;
  expect_error(ErrorKind::input, {"replay predicts no finite number for 8 replicas", "--network"},
               [&] { predict(canonical_content(records), options); });
  options.predictor = PredictorChoice::better;  // laws can do without it
  const Prediction one = predict(canonical_content(records), options).at(0);
  EXPECT_EQ(one.predictor().name, "laws");
  EXPECT_FALSE(one.predictors[1].held_out);
  EXPECT_FALSE(one.sizes.back().by_predictor[1]);
}

TEST(Replay, StrongScalingDividesTheBatch) {
  const StepLaw law;
  std::vector<Json> records;
  for (const int gpus : {2, 4}) {
    Json record = law_record(law, gpus, 1);
    const int batch = 64 / gpus;
    const double step = law.step(gpus, batch), factor = static_cast<double>(batch) / kBatch;
    record["parameters"]["batch_per_replica"] = batch;
    record["plan"]["global_batch"] = 64;
    record["throughput"]["samples_per_second"] = 64 / step;
    record["throughput"]["samples"] = 64 * kSteps;
    for (Json& rank : record["phases"]) {
      rank["forward"] = kForward * factor * kSteps;
      rank["backward"] = kBackward * factor * kSteps;
    }
    for (int i : {0, 1}) {
      record["plan"]["gradients"][i]["backward_seconds"] = kBackward * factor * (i == 0 ? 0.25 : 1);
    }
    records.push_back(record);
  }
  const Made made = make_replay(records, {bench_record(law, 2)}, Scaling::strong);
  EXPECT_NEAR(Replay(made.sources).at(8).step_seconds / law.step(8, 8), 1, 0.02);
}

TEST(Replay, ReportsInOneSentenceWhyItCannot) {
  Json record = law_record(StepLaw(), 1, 1);
  record.erase("plan");
  EXPECT_NE(Replay(make_replay({record}, {}).sources).why_not(), "");
  record = law_record(StepLaw(), 1, 1);
  expect_parts(Replay(make_replay({record}, {}).sources).why_not(), {"bench allreduce"});
}

TEST(Replay, AThousandReplicasTakeLessThanTenSeconds) {
  const StepLaw law;
  const Made made = make_replay(run_values(law, {2, 4}), {bench_record(law, 2)});
  const Replay replay(made.sources);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_GT(replay.at(1024).step_seconds, law.step(64));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST(WhatIf, MistakesAreNamed) {
  const WhatIf all = parse_what_if("precision-on-the-wire=bf16, bucket_mb=32, links=2x");
  EXPECT_EQ(all.wire, "bf16");
  EXPECT_EQ(all.bucket_mb, 32);
  EXPECT_EQ(all.links, 2);
  for (const auto& [text, part] :
       std::map<std::string, std::string>{{"link=2x", "links"},
                                          {"links=0x", "links"},
                                          {"links=x", "links"},
                                          {"", "known"},
                                          {"bucket_mb=nan", "bucket_mb"},
                                          {"links=2x,links=3x", "twice"},
                                          {"precision-on-the-wire=int8", "bf16"}}) {
    expect_error(ErrorKind::usage, {part}, [&text = text] { parse_what_if(text); });
  }
}

}  // namespace
}  // namespace paceline
