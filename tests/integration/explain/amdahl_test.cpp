// The method tested on itself, end to end: real runs of a workload whose serial share is 0.20 by
// construction (workloads/amdahl) must be found to have one.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

class Amdahl : public Cli {
 protected:
  // Each call makes a study of its own.
  nlohmann::json explained(const std::string& sweep_options) const {
    const std::string results = "results" + std::to_string(++calls_);
    const Ran sweep = shell("timeout 300 '" PACELINE_BINARY "' sweep '" PACELINE_SOURCE_DIR
                            "/sweeps/amdahl.json' --no-report --results " +
                            results + " " + sweep_options);
    EXPECT_EQ(sweep.code, 0) << sweep.err;
    const Ran explain = succeed("explain --json " + results + "/amdahl");
    return nlohmann::json::parse(explain.out)["explanations"][0];
  }

 private:
  mutable int calls_ = 0;
};

// The phases account for what was measured from outside, but for start and end.
double largest_residual(const nlohmann::json& explanation) {
  double largest = 0;
  for (const auto& point : explanation["points"]) {
    if (point["gpus"] == 1) continue;
    largest = std::max(largest, std::abs(point["residual"].get<double>()));
  }
  return largest;
}

// By Karp and Flatt, mean over the sizes. No law is fitted to rows that share CPUs, as they may
// here.
double serial_share(const nlohmann::json& explanation) {
  double sum = 0, sizes = 0;
  for (const auto& point : explanation["points"]) {
    const double replicas = point["gpus"];
    if (replicas == 1) continue;
    const double speed_up = point["efficiency"].get<double>() * replicas;
    sum += (1 / speed_up - 1 / replicas) / (1 - 1 / replicas);
    ++sizes;
  }
  return sum / sizes;
}

TEST_F(Amdahl, TheSerialShareIsRecovered) {
  constexpr double kTrue = 0.20, kWithin = 0.02, kResidual = 0.15;
  constexpr int kTries = 3;  // a machine that is busy with something else may spoil one
  double share = 0, residual = 1;
  for (int i = 0; i < kTries; ++i) {
    const auto explanation = explained("--repeats 2");
    ASSERT_EQ(explanation["points"].size(), 4U);
    share = serial_share(explanation);
    residual = largest_residual(explanation);
    if (std::abs(share - kTrue) <= kWithin && residual <= kResidual) break;
  }
  EXPECT_NEAR(share, kTrue, kWithin);
  EXPECT_LE(residual, kResidual);
}

// Naps take equally long in every run, so that the gate's runs can be made here for real.
TEST_F(Amdahl, TheSameBuildIsNotSlowerThanItself) {
  const Ran ran =
      shell("timeout 300 '" PACELINE_BINARY "' gate --aa '" PACELINE_SOURCE_DIR
            "/sweeps/amdahl.json' --set gpus=2 --set steps=3 --rounds 3 --json --out aa "
            "--only time");
  ASSERT_TRUE(ran.code == 0 || ran.code == 2) << ran.out << ran.err;  // 2: a busy machine
  for (const char* side : {"first: paceline ", "second: paceline "}) {
    EXPECT_TRUE(contains(ran.err, side)) << ran.err;
  }
  const auto verdict = nlohmann::json::parse(ran.out);
  ASSERT_EQ(verdict["checks"].size(), 1U);
  EXPECT_EQ(verdict["checks"][0]["evidence"], "paired");
  EXPECT_EQ(verdict["checks"][0]["baseline_runs"], 3);
  EXPECT_NEAR(verdict["checks"][0]["change"].get<double>(), 0, 0.5);
  EXPECT_GT(verdict["proposed_thresholds"]["time"], 0) << "from its own noise";
}

TEST_F(Amdahl, ItHasNoDataToBeGiven) {
  expect_refused("train amdahl --data .", 64, {"amdahl generates its own samples", "--data"});
}

}  // namespace
}  // namespace paceline
