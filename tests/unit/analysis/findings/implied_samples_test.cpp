// Published rows whose time and rate contradict each other.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "analysis/findings/findings.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

// Rows of 1, 2, 4, ... GPUs of a run of a million samples, each off by its factor.
Study published_study(const std::vector<double>& factors) {
  std::vector<Json> records;
  int gpus = 1;
  for (const double factor : factors) {
    Json record = sample_record({.gpus = gpus, .fit_seconds = 1000.0 / gpus});
    record["kind"] = "published";
    record["throughput"] = {{"samples_per_second", 1000.0 * gpus * factor}};
    records.push_back(record);
    gpus *= 2;
  }
  return make_studies(canonical_content(records)).at(0);
}

TEST(ImpliedSamples, ARowThatDoesNotAgreeIsNamed) {
  EXPECT_EQ(
      implied_samples_line(published_study({1, 1.02, 0.75, 0.98})),
      "check the published numbers: time x rate gives 750000 samples for 4 replicas, but 980000 "
      "to 1.02 million for the other 3 rows");
  EXPECT_EQ(implied_samples_line(published_study({1, 1.09, 0.93, 0.98})), "");
  EXPECT_EQ(implied_samples_line(published_study({1, 0.5})), "") << "two rows: which is wrong?";
}

TEST(ImpliedSamples, MeasuredRowsNeedNoSuchCheck) {
  EXPECT_EQ(implied_samples_line(make_studies(canonical_content(drifting_study())).at(0)), "");
}

TEST(ImpliedSamples, OfTheShippedTableThatDoesNot) {
  const auto folder = std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference";
  const Study study = make_studies(load_stores({folder / "jsc-clip-vit-l14"})).at(0);
  expect_parts(implied_samples_line(study),
               {"gives 2.34 million samples for 16 GPUs, but 3.12 million to "
                "3.17 million for the other 4 rows"});
}

// A program of one and two replicas, whose rate is so many times its samples over its seconds.
std::string rate_line(double factor, const std::function<void(Json&)>& change = {}) {
  std::vector<Json> records;
  for (const int gpus : {1, 2}) {
    Json record = sample_record({.gpus = gpus, .fit_seconds = 100.0 / gpus});
    record["provenance"]["program"] = {{"name", "train"}};
    record["throughput"] = {{"samples", 1000}, {"samples_per_second", factor * 10.0 * gpus}};
    if (change) change(record);
    records.push_back(record);
  }
  return rate_off_time_line(make_studies(canonical_content(records)).at(0));
}

TEST(RateOffTime, AFactorThatNothingExplainsIsNamed) {
  EXPECT_TRUE(
      rate_line(4).starts_with("check rate, samples and seconds: the rate of 1 replica is 4.00 "
                               "times its samples / fit seconds, of 2 replicas is 4.00 times"))
      << rate_line(4);
  EXPECT_EQ(rate_line(1.4), "") << "a rate may leave out warm-up";
  EXPECT_EQ(rate_line(0.7), "");
  expect_parts(rate_line(0.25), {"is 0.25 times"});
}

TEST(RateOffTime, ReplicasAndAccumulationExplainIt) {
  const std::string two = rate_line(0.5);
  expect_no_parts(two, {"seconds, 1 over its replicas, of 2 replicas"});
  expect_parts(two, {"of 2 replicas is 0.50 times its samples / fit seconds, 1 over its replicas"});
  expect_parts(rate_line(2), {"of 2 replicas is 2.00 times its samples / fit seconds, as many as "
                              "its replicas"});
  const std::string accumulated =
      rate_line(4, [](Json& record) { record["parameters"]["gradient_accumulation_steps"] = 4; });
  expect_parts(accumulated, {"as many as its gradient-accumulation-steps"});
}

TEST(RateOffTime, OurOwnTrainerIsNotAsked) {
  EXPECT_EQ(rate_line(4, [](Json& record) { record["provenance"].erase("program"); }), "");
}

}  // namespace
}  // namespace paceline
