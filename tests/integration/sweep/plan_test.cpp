// What needs no run: plans and bad input. Also in a build without the engine.
#include <nlohmann/json.hpp>

#include "tests/integration/sweep/paceline.h"
#include "tests/support/has_engine.h"

namespace paceline {
namespace {

class SweepPlan : public SmallStudy {
 protected:
  // One line, and nothing made.
  void expect_refused(int code, const std::vector<std::string>& parts,
                      const std::vector<std::string>& more = {"--dry-run"}) const {
    const Ran ran = sweep(more);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_EQ(lines_in(ran.err), 1u) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("paceline: ")) << ran.err;
    expect_parts(ran.err, parts);
    EXPECT_FALSE(std::filesystem::exists(results()));
  }
};

TEST_F(SweepPlan, TextAndJson) {
  PACELINE_NEEDS_ENGINE();
  write_spec(R"("axes": {"gpus": [1, 2], "backend": ["mirrored"]}, "repeats": 2)");
  const Ran text = succeed({"--dry-run"});
  expect_parts(text.out, {"small: 2 points x 2 repeats of mnist-mlp", "4 of 4 runs to do",
                          "gpus=2,cpus_per_task=2,backend=mirrored", "0 of 2 done"});
  const Ran ran = succeed({"--dry-run", "--json", "--set", "gpus=2,4", "--repeats", "3"});
  const auto plan = nlohmann::json::parse(ran.out);
  EXPECT_EQ(plan.at("study"), "small");
  ASSERT_EQ(plan.at("points").size(), 2u);
  const auto& point = plan["points"][1];
  EXPECT_EQ(point.at("point"), "gpus=4,cpus_per_task=4,backend=mirrored");
  EXPECT_EQ(point.at("ntasks"), 1);
  EXPECT_EQ(point.at("parameters").at("steps"), 20);
  EXPECT_EQ(plan.at("runs").size(), 6u);
  EXPECT_EQ(plan["runs"][0].at("state"), "missing");
  EXPECT_FALSE(std::filesystem::exists(results())) << "a plan makes nothing";
}

TEST_F(SweepPlan, OfManyPointsAHundredAreListed) {
  PACELINE_NEEDS_ENGINE();
  std::string list;
  for (int i = 1; i <= 500; ++i) list += (i > 1 ? "," : "") + std::to_string(i);
  write_spec(R"("axes": {"gpus": [1, 2], "backend": ["mirrored"], "seed": [)" + list + "]}");
  const Ran few = succeed({"--dry-run"});
  EXPECT_LT(lines_in(few.out), 120u);
  expect_parts(few.out,
               {"1000 points x 1 repeat", "... and 900 more points: 0 runs done, 900 to do",
                "1000 of 1000 runs to do"});
  EXPECT_GT(lines_in(sweep({"--dry-run", "--all"}).out), 1000u);
}

// The plan is for another machine, maybe.
TEST_F(SweepPlan, WhatCannotRunHereIsPlannedAndReported) {
  const Name self = find_name("backend", "self");
  if (!self.built) GTEST_SKIP() << "without the engine nothing is known of this machine";
  write_spec(R"("axes": {"gpus": [1, 4096], "backend": ["mirrored"]})");
  const Ran large = succeed({"--dry-run", "--set", "oversubscribe=false"});
  expect_parts(large.out, {"small: 2 points", "note: cannot run here: gpus=4096,",
                           "backend=mirrored  0 of 1 done; cannot run here"});
  const Ran nodes =
      sweep({"--dry-run", "--set", "gpus=2", "--set", "nodes=2", "--set", "backend=ring"});
  expect_parts(nodes.out, {"2 nodes, and a sweep runs on one: paceline submit"});
  if (!is_built("nccl")) return;
  const Ran nccl = sweep({"--dry-run", "--set", "gpus=1", "--set", "backend=nccl"});
  expect_parts(nccl.out, {"backend nccl needs GPUs"});
}

TEST_F(SweepPlan, RowsWithoutABaseAreReportedBeforeTheFirstRun) {
  write_spec(R"("axes": {"gpus": [2, 4], "backend": ["mirrored"]})");
  const Ran ran = succeed({"--dry-run"});
  expect_parts(ran.out, {"warning: no speed-up for gpus=2,", "add gpus 1"});
}

TEST_F(SweepPlan, BadSpecs) {
  write_spec(R"("axes": {"gpu": [1]})");
  expect_refused(64, {"unknown axis \"gpu\"", "small.json:4", "did you mean \"gpus\"?"});
  write_spec(R"("axes": {"gpus": [1 2]})");
  expect_refused(65, {"small.json:4:", "not JSON"});
  write_spec(R"("axes": {"gpus": [4096]}, "where": "gpus <= cores")");
  expect_refused(65, {"no points", "small.json:4", "cores is"});
  std::filesystem::remove(spec());
  expect_refused(65, {"small.json"});
}

TEST_F(SweepPlan, BadOptions) {
  write_spec(R"("axes": {"gpus": [1]})");
  expect_refused(64, {"backend", "\"mirored\"", "\"mirrored\""},
                 {"--dry-run", "--set", "backend=mirored"});
  expect_refused(64, {"axis=value"}, {"--dry-run", "--set", "gpus"});
  expect_refused(64, {"--repeats"}, {"--repeats", "0"});
  expect_refused(64, {"--dry-run"}, {"--json"});
}

}  // namespace
}  // namespace paceline
