// A backend and a device of GPUs that no source of ours names do all that the shipped ones do.
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

class SamplePlugin : public Cli {
 protected:
  const std::string run_ =
      "train mnist-mlp --device abacus --steps 2 --batch-per-replica 4 --test-limit 10 --evaluate "
      "none "
      "--quiet ";
};

TEST_F(SamplePlugin, TheyAreListed) {
  EXPECT_TRUE(contains(paceline("list devices").out, "abacus"));
  EXPECT_TRUE(contains(paceline("list backends").out, "tincans"));
}

TEST_F(SamplePlugin, TheDeviceChoosesPrecisionAndBackendAndItsReplicasAreGpus) {
  const Json record = Json::parse(succeed(run_ + "--gpus 2 --json").out);
  EXPECT_EQ(record["parameters"]["backend"], "tincans");
  EXPECT_EQ(record["parameters"]["precision"], "fp64");
  EXPECT_EQ(record["layout"]["replicas_are"], "gpus");
  EXPECT_EQ(record["layout"]["ntasks"], 1);
  ASSERT_EQ(record["gpus"].size(), 2U);
  EXPECT_EQ(record["gpus"][1]["name"], "Sample GPU");
  EXPECT_EQ(record["utilization"], 0.5);
}

TEST_F(SamplePlugin, MoreReplicasThanGpusAreRefused) {
  expect_refused(run_ + "--gpus 3 --oversubscribe", 64, {"3 GPUs", "2 are visible"});
}

TEST_F(SamplePlugin, AStudyOfThemHasATable) {
  std::ofstream(folder() / "s.json")
      << R"({"name": "s", "workload": "mnist-mlp", "repeats": 1, "control": false,
             "axes": {"gpus": [1, 2], "device": ["abacus"], "backend": ["tincans"]},
             "fixed": {"steps": 2, "batch_per_replica": 4, "evaluate": "none"}})";
  succeed("sweep s.json --results r");
  const Ran report = succeed("report r/s --verbose");
  EXPECT_TRUE(contains(report.out, "tincans")) << report.out;
}

}  // namespace
}  // namespace paceline
