#include "results/expected_runs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/core/error.h"
#include "results/store.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

Point point(int gpus, const std::string& backend) {
  Point point;
  point.set("gpus", std::int64_t{gpus});
  point.set("backend", backend);
  point.set("learning_rate", 0.5);
  point.set("overlap", false);
  return point;
}

std::string plan_refusal(const std::filesystem::path& folder, const std::string& text) {
  std::ofstream(folder / kExpectedRunsFile) << text;
  return catch_error([&] { read_expected_runs(folder); });
}

TEST(ExpectedRuns, IsReadAsWritten) {
  const Scratch folder;
  EXPECT_FALSE(read_expected_runs(folder.path()));
  write_expected_runs(folder / "quick",
                      {"quick", "mnist-cnn", 3, {point(1, "mpi"), point(2, "gloo")}});
  const auto plan = read_expected_runs(folder / "quick");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->study, "quick");
  EXPECT_EQ(plan->workload, "mnist-cnn");
  EXPECT_EQ(plan->repeats, 3);
  EXPECT_EQ(plan->points, (std::vector<Point>{point(1, "mpi"), point(2, "gloo")}));
}

TEST(ExpectedRuns, HasTheProgramsAsTheyWere) {
  const Scratch folder;
  ProgramFacts program;
  program.name = "own";
  program.files_hash = "1234";
  program.dirty = false;
  write_expected_runs(folder / "own",
                      {"own", "command", 1, {point(1, "mpi")}, {program}, "2026-01-01T00:00:00Z"});
  const auto plan = read_expected_runs(folder / "own");
  ASSERT_TRUE(plan && plan->programs.size() == 1);
  EXPECT_EQ(plan->programs[0].name, "own");
  EXPECT_EQ(plan->seen_at, "2026-01-01T00:00:00Z");
  EXPECT_FALSE(plan->programs[0].differs_from(program));
  expect_parts(
      plan_refusal(folder.path(), R"({"schema": 1, "programs": [{"name": 1}], "points": []})"),
      {"plan.json", "name", "should be a text"});
}

TEST(ExpectedRuns, NamesFileAndKeyOfWhatIsWrong) {
  const Scratch folder;
  const auto said = [&](const std::string& text) { return plan_refusal(folder.path(), text); };
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"{\"schema\": 1, ", "plan.json:1:"},
           {"{\"schema\": 2, \"points\": []}", "plan.json:1: is not a plan that this build reads"},
           {"{\"schema\": 1}", "plan.json:1: \"points\" is missing"},
           {"{\"schema\": 1, \"points\": [1]}", "points[0] must be an object"},
           {"{\"schema\": 1, \"points\": [{\n\"gpus\": -1}]}", "plan.json:2"},
           {"{\"schema\": 1, \"repeats\": 2e9, \"points\": []}", "repeats must be a whole number"},
           {"{\"schema\": \"x\", \"points\": []}", "is not a plan that this build reads"}}) {
    expect_parts(said(text), {part});
  }
}

TEST(ExpectedRuns, WhatIsGoneSinceIsRead) {
  const Scratch folder;
  std::ofstream(folder / kExpectedRunsFile)
      << R"({"schema": 1, "points": [{"gpus": 4, "cpus_per_task": 4, "clip_value": 1,
             "backend": "mirrored/gloo+fp16", "schedule": "polynomial"}]})";
  const Point point = read_expected_runs(folder.path())->points.at(0);
  EXPECT_EQ(point.real("clip_value"), 1);
  EXPECT_EQ(point.text("schedule"), "polynomial");
  EXPECT_EQ(recorded_layout(point).ntasks, 1);
  EXPECT_THROW(make_layout(point), Error);
}

TEST(ExpectedRuns, APointThatNoSweepPlansIsDamageOfTheFile) {
  const Scratch folder;
  const auto file = folder / kExpectedRunsFile;
  for (const auto& [point, part] : std::vector<std::pair<std::string, std::string>>{
           {R"("gpus": 0)", "gpus cannot be \"0\""},
           {R"("gpus": "1")", "a whole number"},
           {R"("zzz": 1)", "unknown axis \"zzz\""},
           {R"("gpus": 2)", "2 replicas need a backend"},
           {R"("gpus": 64, "backend": "mirrored", "cpus_per_task": 2)", "at least one"}}) {
    std::ofstream(file) << "{\"schema\": 1, \"points\": [\n{" << point << "}]}";
    expect_error(ErrorKind::input, {"plan.json:2", part},
                 [&] { read_expected_runs(folder.path()); });
    StoreContent content;
    EXPECT_TRUE(load_plans({folder.path()}, content).empty());
    ASSERT_EQ(content.rejected.size(), 1U) << point;
    EXPECT_EQ(content.rejected[0].file, file);
  }
}

}  // namespace
}  // namespace paceline
