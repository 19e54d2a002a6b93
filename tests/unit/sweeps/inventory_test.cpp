#include "sweeps/inventory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "results/run_record.h"
#include "sweeps/study_plan.h"
#include "tests/support/has_engine.h"
#include "tests/unit/results/sample_record.h"
#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

// A study of two points with two repeats; records are put into it one by one.
class Inventory : public ::testing::Test {
 protected:
  Inventory()
      : points_(
            make_expansion(R"("fixed": {"backend": "null"}, "axes": {"gpus": [1, 2]})").points) {
    Point parameters;
    parameters.set("backend", std::string("mpi"));
    parameters.set("epochs", std::int64_t{2});
    for (int i = 0; i < 2; ++i) resolved_.push_back({parameters, "id", "data", build_of_record()});
  }

  static std::string build_of_record() { return Record(sample_record(), "sample")->build(); }

  static Json record(const std::string& identity = "id", const std::string& data = "data") {
    Json json = sample_record();
    json["identity"] = identity;
    json["provenance"]["data_hash"] = data;
    return json;
  }

  std::filesystem::path put(Json json, int repeat = 1, const std::string& folder = "gpus=1") {
    json["repeat"] = repeat;
    return Store(folder_.path()).write(folder, repeat, json, "");
  }

  std::vector<RunStatus> take(bool new_build = false) const {
    return take_inventory(points_, schedule(2, 2, false, 0), load_store(folder_.path()), resolved_,
                          new_build);
  }

  RunStatus first(bool new_build = false) const { return take(new_build).at(0); }

  Scratch folder_;
  std::vector<PlannedPoint> points_;
  std::vector<Resolved> resolved_;
};

TEST_F(Inventory, EmptyIsAllMissing) {
  const auto runs = take();
  ASSERT_EQ(runs.size(), 4u);
  for (const RunStatus& run : runs) {
    EXPECT_EQ(run.state, RunState::missing);
    EXPECT_EQ(run.why, "no record");
  }
}

TEST_F(Inventory, ACompletedRecordIsDoneForItsRepeatOnly) {
  Json json = record();
  json["timing"]["setup_seconds"] = 2;
  json["timing"]["evaluation_seconds"] = 0.5;
  const auto file = put(json, 2, "gpus=2");
  const auto runs = take();
  for (int i : {0, 1, 2}) EXPECT_EQ(runs[static_cast<std::size_t>(i)].state, RunState::missing);
  EXPECT_EQ(runs[3].state, RunState::done);
  EXPECT_EQ(runs[3].why, file.string());
  EXPECT_DOUBLE_EQ(runs[3].seconds, 12.5);
  EXPECT_FALSE(runs[3].other_build);
}

TEST_F(Inventory, AFailedOneIsRunAgainAndReportsWhy) {
  Json json = record();
  json["status"] = "timeout";
  json["reason"] = "took longer than 3 s";
  put(json);
  EXPECT_EQ(first().state, RunState::failed);
  EXPECT_EQ(first().why, "timeout: took longer than 3 s");
  put(record());
  EXPECT_EQ(first().state, RunState::done) << "a later attempt completed";
}

TEST_F(Inventory, AFailureAfterACompletedOneLeavesItDone) {
  put(record());
  Json json = record();
  json["status"] = "failed";
  put(json);
  EXPECT_EQ(first().state, RunState::done);
}

TEST_F(Inventory, ACutShortOneCannotBeUsed) {
  std::filesystem::resize_file(put(record()), 100);
  EXPECT_NE(first().state, RunState::done);
  expect_parts(first().why, {"its record cannot be used"});
  EXPECT_EQ(take()[1].why, "no record");
}

TEST_F(Inventory, OtherParametersAreNamed) {
  put(record("other id"));  // epochs 2 as now, but with the rest of the sample's
  resolved_[0].parameters.set("epochs", std::int64_t{3});
  EXPECT_EQ(first().state, RunState::changed);
  expect_parts(first().why, {"other parameters", "epochs was 2, is 3"});
}

TEST_F(Inventory, OtherData) {
  put(record("id", "other data"));
  EXPECT_EQ(first().state, RunState::changed);
  EXPECT_EQ(first().why, "its record is of other data");
}

TEST_F(Inventory, AnotherBuildIsDoneUnlessAskedFor) {
  put(record());
  resolved_[0].build = "0.2.0 def";
  EXPECT_EQ(first().state, RunState::done);
  EXPECT_TRUE(first().other_build);
  EXPECT_EQ(first(true).state, RunState::changed);
  expect_parts(first(true).why, {"another build", build_of_record()});
  resolved_[0].build = build_of_record();
  EXPECT_EQ(first(true).state, RunState::done);
}

TEST_F(Inventory, AnEditedProgramIsAnotherBuild) {
  Json json = record();
  json["provenance"]["program"] = {
      {"name", "train"}, {"commit", std::string(40, 'a')}, {"dirty", false}, {"files_hash", "f1"}};
  put(json);
  ProgramFacts same;
  same.commit = std::string(40, 'a');
  same.dirty = false;
  same.files_hash = "f1";
  resolved_[0].build = "another Paceline";
  resolved_[0].program = same;
  EXPECT_FALSE(first().other_build) << "Paceline is not what is measured";
  EXPECT_EQ(first(true).state, RunState::done);
  for (auto change : {+[](ProgramFacts& now) { now.commit = std::string(40, 'b'); },
                      +[](ProgramFacts& now) { now.dirty = true; },
                      +[](ProgramFacts& now) { now.files_hash = "f2"; }}) {
    ProgramFacts now = same;
    change(now);
    resolved_[0].program = now;
    EXPECT_TRUE(first().other_build);
    EXPECT_EQ(first(true).state, RunState::changed);
    expect_parts(first(true).why, {"another build", "aaaaaaaaaaaa, files f1"});
  }
  resolved_[0].program = ProgramFacts{};
  EXPECT_FALSE(first().other_build) << "nothing is known of it";
}

TEST_F(Inventory, ARecordOfThisBuildIsFoundBehindAnother) {
  Json old = record();
  old["provenance"]["commit"] = "abc0000";
  put(old);
  Json now = record();
  now["attempt"] = 2;
  put(now);
  resolved_[0].build = build_of_record();
  EXPECT_FALSE(first().other_build);
  EXPECT_EQ(first(true).state, RunState::done);
}

TEST_F(Inventory, ARecordOfAnotherMachineServesNoRun) {
  PACELINE_NEEDS_ENGINE();
  put(record());
  std::string elsewhere = "AMD EPYC, 2 CPUs";
  const auto take_there = [&] {
    return take_inventory(points_, schedule(2, 2, false, 0), load_store(folder_.path()), resolved_,
                          false, [&](const Record&) { return elsewhere; });
  };
  EXPECT_EQ(take_there()[0].state, RunState::elsewhere);
  EXPECT_EQ(take_there()[0].why, "its record is of another machine (AMD EPYC, 2 CPUs)");
  EXPECT_EQ(take_there()[1].state, RunState::missing);
  StudyPlan plan;
  plan.runs = take_there();
  plan.expansion.points = points_;
  EXPECT_EQ(other_machine_lines(plan),
            std::vector<std::string>{"1 run of another machine (AMD EPYC, 2 CPUs) is not counted"});
  EXPECT_EQ(runs_to_make(plan), 4U);
  const auto lines = resume_lines(plan);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.starts_with("to run"); }),
            2)
      << "repeats of one reason are a line";
  elsewhere.clear();
  EXPECT_EQ(take_there()[0].state, RunState::done);
}

}  // namespace
}  // namespace paceline
