#include <gtest/gtest.h>

#include <fstream>

#include "results/names.h"
#include "run/plan_study.h"
#include "tests/support/expect_error.h"
#include "tests/support/has_engine.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() {
    options_.spec = (scratch_ / "s.json").string();
    options_.results = (scratch_ / "results").string();
    options_.dry_run = true;
    std::ofstream(options_.spec) << R"({"name": "s", "workload": "mnist-mlp", "repeats": 2,
        "fixed": {"device": "cpu", "cpus_per_replica": 1, "input": "synthetic", "steps": 2,
                  "backend": "mirrored"}, "axes": {"gpus": [1]}})";
  }
  void expect_refusal(const std::vector<std::string>& parts) const {
    expect_error(ErrorKind::usage, parts, [&] { Sweep sweep(options_); });
  }

  Scratch scratch_;
  SweepOptions options_;
};

TEST_F(SweepTest, OptionsChangeTheSpec) {
  options_.set = {"gpus=1,2"};
  options_.repeats = 3;
  options_.timeout = 7;
  options_.control = true;
  Sweep sweep(options_);
  const StudyPlan& plan = sweep.plan();
  EXPECT_EQ(plan.spec.repeats, 3);
  EXPECT_EQ(plan.spec.timeout_seconds, 7);
  EXPECT_EQ(plan.study, scratch_ / "results" / "s");
  EXPECT_EQ(plan.expansion.points.size(), 3U) << "and the control";
  EXPECT_TRUE(plan.runs.empty());
  EXPECT_TRUE(sweep.look_at().records.empty());
  EXPECT_EQ(plan.runs.size(), 9U);
  EXPECT_FALSE(std::filesystem::exists(options_.results));
}

TEST_F(SweepTest, UntilPrecisionSaysHowLongAPointGoesOn) {
  options_.until_precision = "2%";
  options_.max_repeats = 12;
  const Sweep sweep(options_);
  EXPECT_TRUE(sweep.plan().spec.sequential);
  ASSERT_FALSE(sweep.plan().expansion.notes.empty());
  EXPECT_EQ(sweep.plan().expansion.notes.back(),
            "after these, a point goes on while its interval is wider than ±2 %, up to 12 repeats");
  options_.max_gpu_hours = 1;
  expect_refusal({"--max-gpu-hours"});
}

TEST_F(SweepTest, WhatIsNamedHasToBeBuilt) {
  options_.dry_run = false;
  if (!has_engine()) return expect_refusal({"no engine", "--dry-run"});
  for (const Name& backend : known_names().backends) {
    options_.set = {"backend=mirrored," + backend.name};
    if (!backend.built) expect_refusal({"backend " + backend.name + " is not built here", "--set"});
  }
  options_.set = {"backend=mirored"};
  expect_refusal({"--set backend=mirored", "\"mirrored\"?"});
}

}  // namespace
}  // namespace paceline
