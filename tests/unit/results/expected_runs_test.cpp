#include "results/expected_runs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

using testing::TemporaryFolder;

Point point(int gpus, const std::string& backend) {
  Point point;
  point.set("gpus", std::int64_t{gpus});
  point.set("backend", backend);
  point.set("learning_rate", 0.5);
  point.set("overlap", false);
  return point;
}

std::string wanted_refusal(const std::filesystem::path& folder, const std::string& text) {
  std::ofstream(folder / kWantedFile) << text;
  try {
    read_wanted(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Wanted, IsReadAsWritten) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_wanted(folder.path()));
  write_wanted(folder / "quick", {"quick", "mnist-cnn", 3, {point(1, "mpi"), point(2, "gloo")}});
  const auto plan = read_wanted(folder / "quick");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->study, "quick");
  EXPECT_EQ(plan->workload, "mnist-cnn");
  EXPECT_EQ(plan->repeats, 3);
  EXPECT_EQ(plan->points, (std::vector<Point>{point(1, "mpi"), point(2, "gloo")}));
}

TEST(Wanted, NamesFileAndKeyOfWhatIsWrong) {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& text) { return wanted_refusal(folder.path(), text); };
  EXPECT_NE(said("{\"schema\": 1, ").find("plan.json:1:"), std::string::npos);
  EXPECT_NE(said("{\"schema\": 2, \"points\": []}").find("plan.json, key /schema"),
            std::string::npos);
  EXPECT_NE(said("{\"schema\": 1}").find("key /points"), std::string::npos);
  EXPECT_NE(said("{\"schema\": 1, \"points\": [1]}").find("key /points"), std::string::npos);
  EXPECT_NE(said("{\"schema\": 1, \"points\": [{\n\"gpus\": -1}]}").find("plan.json:2"),
            std::string::npos);
  EXPECT_NE(said("{\"schema\": 1, \"repeats\": 2e9, \"points\": []}").find("key /repeats"),
            std::string::npos);
  EXPECT_NE(said("{\"schema\": \"x\", \"points\": []}").find("wrong type"), std::string::npos);
}

TEST(Wanted, WhatIsGoneSinceIsRead) {
  const TemporaryFolder folder;
  std::ofstream(folder / kWantedFile)
      << R"({"schema": 1, "points": [{"gpus": 4, "cpus_per_task": 4, "clip_value": 1,
             "backend": "mirrored/gloo+fp16", "schedule": "polynomial"}]})";
  const Point point = read_wanted(folder.path())->points.at(0);
  EXPECT_EQ(point.real("clip_value"), 1);
  EXPECT_EQ(point.text("schedule"), "polynomial");
  EXPECT_EQ(recorded_layout(point).ntasks, 1);
  EXPECT_THROW(make_layout(point), Error);
}

TEST(Wanted, APointThatNoSweepPlansIsDamageOfTheFile) {
  const TemporaryFolder folder;
  const auto file = folder / kWantedFile;
  for (const auto& [point, part] : std::vector<std::pair<std::string, std::string>>{
           {R"("gpus": 0)", "gpus cannot be \"0\""},
           {R"("gpus": "1")", "a whole number"},
           {R"("zzz": 1)", "unknown axis \"zzz\""},
           {R"("gpus": 2)", "2 replicas need a backend"},
           {R"("gpus": 64, "backend": "mirrored", "cpus_per_task": 2)", "at least one"}}) {
    std::ofstream(file) << "{\"schema\": 1, \"points\": [\n{" << point << "}]}";
    expect_error(ErrorKind::input, {"plan.json:2", part}, [&] { read_wanted(folder.path()); });
    StoreContent content;
    EXPECT_TRUE(load_plans({folder.path()}, content).empty());
    ASSERT_EQ(content.rejected.size(), 1U) << point;
    EXPECT_EQ(content.rejected[0].file, file);
  }
}

}  // namespace
}  // namespace paceline
