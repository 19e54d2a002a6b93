// The method tested on itself, end to end: real runs of a workload whose serial share is 0.20 by
// construction (workloads/amdahl) must be found to have one.
#include <nlohmann/json.hpp>

#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

using testing::Ran;

class Amdahl : public testing::Cli {
 protected:
  // Each call makes a study of its own.
  nlohmann::json explained(const std::string& sweep_options) const {
    const std::string results = "results" + std::to_string(++calls_);
    const Ran sweep = shell("timeout 300 '" PACELINE_BINARY "' sweep '" PACELINE_SOURCE_DIR
                            "/sweeps/amdahl.json' --no-report --results " +
                            results + " " + sweep_options);
    EXPECT_EQ(sweep.code, 0) << sweep.err;
    const Ran explain = paceline("explain --json " + results + "/amdahl");
    EXPECT_EQ(explain.code, 0) << explain.err;
    return nlohmann::json::parse(explain.out)["explanations"][0];
  }

 private:
  mutable int calls_ = 0;
};

TEST_F(Amdahl, TheSerialShareIsRecovered) {
  constexpr double kTrue = 0.20, kWithin = 0.02;
  constexpr int kTries = 3;  // a machine that is busy with something else may spoil one
  double share = 0;
  for (int i = 0; i < kTries && !(std::abs(share - kTrue) <= kWithin); ++i) {
    const auto explanation = explained("--repeats 2");
    share = explanation["ladders"][0]["amdahl_serial_share"]["value"];
    const auto& points = explanation["points"];
    ASSERT_EQ(points.size(), 4U);
    for (const auto& point : points) {
      if (point["gpus"] == 1) continue;
      // The phases account for what was measured from outside; start and end are not in steps.
      EXPECT_NEAR(point["residual"].get<double>(), 0, 0.15) << point.dump();
    }
  }
  EXPECT_NEAR(share, kTrue, kWithin);
}

// Naps take equally long in every run, so that the gate's runs can be made here for real.
TEST_F(Amdahl, TheSameBuildIsNotSlowerThanItself) {
  const std::string spec = "'" PACELINE_SOURCE_DIR "/sweeps/amdahl.json'";
  const Ran ran = paceline("gate --aa " + spec +
                           " --set gpus=2 --set steps=8 --rounds 3 --json --out aa --only time");
  EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.out << ran.err;  // 2: a busy machine
  const auto verdict = nlohmann::json::parse(ran.out);
  ASSERT_EQ(verdict["checks"].size(), 1U);
  EXPECT_EQ(verdict["checks"][0]["evidence"], "paired");
  EXPECT_EQ(verdict["checks"][0]["baseline_runs"], 3);
  EXPECT_NEAR(verdict["checks"][0]["change"].get<double>(), 0, 0.5);
}

TEST_F(Amdahl, ItHasNoDataToBeGiven) {
  expect_refused("train amdahl --data .", 64, {"amdahl makes its samples itself", "--data"});
}

}  // namespace
}  // namespace paceline
