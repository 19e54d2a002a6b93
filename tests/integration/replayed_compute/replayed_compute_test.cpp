// A replica that sleeps for recorded durations takes as long, and does not change what others
// train.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

class ReplayedCompute : public Cli {
 protected:
  const std::string run_ =
      "train mnist-mlp --device replayed_compute --steps 8 --batch-per-replica 4 --train-limit 64 "
      "--test-limit 10 --evaluate none --quiet --json ";
};

TEST_F(ReplayedCompute, AReplicaTakesTheRecordedTime) {
  std::ofstream(folder() / "recorded") << "ready 0.25 1\n0.004 0.008 0.002\n";
  setenv("PACELINE_RECORDED", (folder() / "recorded").c_str(), 1);
  const Ran ran = paceline(run_ + "--gpus 1");
  unsetenv("PACELINE_RECORDED");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json phases = Json::parse(ran.out)["phases"][0];
  // Backward makes up for a forward that woke up late.
  EXPECT_GE(phases["forward"].get<double>(), 8 * 0.004);
  EXPECT_GE(phases["forward"].get<double>() + phases["backward"].get<double>(), 8 * 0.012);
  EXPECT_GE(phases["update"].get<double>(), 8 * 0.002);
}

TEST_F(ReplayedCompute, DurationsOfAnotherNetworkAreRefused) {
  std::ofstream(folder() / "recorded") << "ready 1\n0.004 0.008 0.002\n";
  setenv("PACELINE_RECORDED", (folder() / "recorded").c_str(), 1);
  const Ran ran = paceline(run_ + "--gpus 1");
  unsetenv("PACELINE_RECORDED");
  EXPECT_EQ(ran.code, 65) << ran.err;
}

TEST_F(ReplayedCompute, WithoutDurationsItComputesAndReportsWhenGradientsAreReady) {
  const Json record = Json::parse(succeed(run_ + "--gpus 1").out);
  const Json& gradients = record["plan"]["gradients"];
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_LT(gradients[0].at("bytes"), gradients[1].at("bytes"));
  EXPECT_EQ(gradients[1]["bytes"], record["plan"]["bucket_bytes"][0]);
  EXPECT_GT(gradients[0]["backward_seconds"].get<double>(), 0);
  EXPECT_LT(gradients[0].at("backward_seconds"), gradients[1].at("backward_seconds"));
}

}  // namespace
}  // namespace paceline
