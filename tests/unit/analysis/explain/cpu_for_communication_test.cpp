#include <gtest/gtest.h>

#include "analysis/explain/efficiency.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

// `runs` of two replicas, whose ranks expose `share` of their step to communication.
std::vector<Json> runs_with(int runs, int cpus, double share, const std::string& backend = "gloo") {
  std::vector<Json> records;
  for (int round = 1; round <= runs; ++round) {
    const double noise = 1 + 0.02 * ((round * 7) % 3 - 1);
    Json record = sample_record({.gpus = 2,
                                 .cpus_per_replica = cpus,
                                 .repeat = round,
                                 .fit_seconds = 10 * noise,
                                 .backend = backend});
    for (Json& rank : record["phases"]) rank["communication"] = 9 * share * noise;
    records.push_back(record);
  }
  return records;
}

std::vector<std::string> sentences(std::vector<Json> records, const std::vector<Json>& more) {
  records.insert(records.end(), more.begin(), more.end());
  std::vector<std::string> all;
  for (const Study& study : make_studies(canonical_content(records))) {
    for (const std::string& each : cpu_for_communication(study)) all.push_back(each);
  }
  return all;
}

TEST(CpuForCommunication, IsReportedWithBothWaits) {
  const auto said = sentences(runs_with(3, 1, 0.6), runs_with(3, 2, 0.05));
  ASSERT_EQ(said.size(), 1U);
  // 5.4 and 0.45 s over 938 steps.
  expect_parts(said[0], {"gloo, 2 replicas: a step waits 5.76 ms for communication with 1 CPU",
                         "with 2 CPUs"});
}

TEST(CpuForCommunication, IsNotReportedWithoutEvidence) {
  EXPECT_TRUE(sentences(runs_with(3, 1, 0.6), runs_with(3, 2, 0.5)).empty()) << "as long";
  EXPECT_TRUE(sentences(runs_with(3, 1, 0.05), runs_with(3, 2, 0.6)).empty()) << "longer";
  EXPECT_TRUE(sentences(runs_with(3, 1, 0.08), runs_with(3, 2, 0.01)).empty()) << "of no weight";
  EXPECT_TRUE(sentences(runs_with(2, 1, 0.6), runs_with(2, 2, 0.05)).empty()) << "two runs each";
  EXPECT_TRUE(sentences(runs_with(3, 1, 0.6), runs_with(3, 2, 0.05, "ring")).empty())
      << "another backend";
}

}  // namespace
}  // namespace paceline
