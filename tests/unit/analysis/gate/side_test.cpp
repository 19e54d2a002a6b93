#include "analysis/gate/side.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analysis/gate/render.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

std::vector<double> list_values(const Subject& subject, Quantity quantity) {
  std::vector<double> values;
  const auto it = subject.samples.find(quantity);
  if (it == subject.samples.end()) return values;
  for (const Sample& sample : it->second) values.push_back(sample.value);
  return values;
}

Side drifting_side(const std::function<void(std::vector<Json>&)>& bend = {}) {
  std::vector<Json> records = drifting_study();
  if (bend) bend(records);
  return load_side("baseline", canonical_content(records));
}

TEST(GateSide, PointsRunsAndSessions) {
  const Side side = drifting_side();
  ASSERT_EQ(side.subjects.size(), 2U);
  EXPECT_EQ(side.subjects[1].name, "mnist-cnn gpus=2,cpus_per_task=1,backend=mpi");
  EXPECT_EQ(side.subjects[1].runs, 3U);
  EXPECT_EQ(side.subjects[1].samples.at(Quantity::time)[0].session, "s1");
  EXPECT_EQ(side.machines, (std::set<std::string>{"A CPU"}));
  EXPECT_EQ(side.subjects[0].samples.at(Quantity::time)[2].round, 3);
  EXPECT_EQ(list_values(side.subjects[0], Quantity::accuracy), (std::vector{0.984, 0.984, 0.984}));
  // 0.08 of each step; one replica has nobody to wait for.
  EXPECT_NEAR(list_values(side.subjects[1], Quantity::communication).at(0), 0.08, 1e-9);
  EXPECT_TRUE(list_values(side.subjects[0], Quantity::communication).empty());
}

// A folder of all nights, against the last one in it.
TEST(GateSide, WhatTheCurrentSideHasIsLeftOutOfTheBaseline) {
  std::vector<Json> nights = drifting_study();
  std::vector<Json> last = drifting_study();
  for (Json& json : last) json["session"] = "s2";
  nights.insert(nights.end(), last.begin(), last.end());
  const Side current = load_side("current", canonical_content(last));
  const Side baseline = load_side("baseline", canonical_content(nights), current);
  EXPECT_EQ(baseline.subjects[0].runs, 3U);
  EXPECT_EQ(baseline.subjects[0].samples.at(Quantity::time)[0].session, "s1");
  ASSERT_EQ(baseline.notes.size(), 1U);
  EXPECT_EQ(baseline.notes[0], "the baseline has 6 runs of the current side in it: left out there");
  EXPECT_TRUE(load_side("baseline", canonical_content(last), current).subjects.empty());
}

// Preempted runs, and those that another attempt made good, are no failures of the build.
TEST(GateSide, OnlyRunsThatAreLostCountAsFailures) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    for (const auto& [repeat, status] :
         {std::pair(1, "failed"), {7, "failed"}, {8, "timeout"}, {9, "preempted"}}) {
      Json json = records[0];
      json["repeat"] = repeat;
      json["status"] = status;
      records.push_back(json);
    }
  });
  EXPECT_EQ(side.subjects[0].runs, 3U);
  EXPECT_EQ(side.subjects[0].not_ended, 4U);
  EXPECT_EQ(side.subjects[0].lost, 2U) << "repeat 1 completed, and 9 was preempted";
}

// Records as a study's folder has them.
Side stored_side(const std::vector<std::pair<std::string, Json>>& records) {
  StoreContent content;
  for (const auto& [folder, json] : records) {
    content.records.emplace_back(
        json, fmt::format("{}/point/{}.{}.json", folder, json["repeat"].get<int>(),
                          json["attempt"].get<int>()));
  }
  return load_side("current", content);
}

Json attempt_at(int repeat, int attempt, const std::string& session, const std::string& status) {
  Json json = sample_record({.repeat = repeat, .session = session});
  json["attempt"] = attempt;
  json["status"] = status;
  json["reason"] = status == "completed" ? "" : "how it " + status;
  return json;
}

// Repeats of each session begin with 1.
TEST(GateSide, FailuresOfOneSessionAreNotMadeGoodByAnother) {
  const auto lost = [](const std::vector<std::pair<std::string, Json>>& records) {
    return stored_side(records).subjects.at(0).lost;
  };
  const Json failed = attempt_at(1, 1, "c2", "failed");
  EXPECT_EQ(lost({{"one", attempt_at(1, 1, "c1", "completed")}, {"two", failed}}), 1U);
  EXPECT_EQ(lost({{"one", attempt_at(1, 2, "c1", "completed")}, {"two", failed}}), 1U);
  // Of single runs in one folder, each is its own.
  EXPECT_EQ(lost({{"one", attempt_at(1, 1, "c1", "completed")}, {"one", failed}}), 1U);
  // A sweep that goes on, and one that makes the runs of an older build again.
  EXPECT_EQ(lost({{"two", failed}, {"two", attempt_at(1, 2, "c3", "completed")}}), 0U);
  EXPECT_EQ(lost({{"two", attempt_at(1, 1, "c1", "completed")},
                  {"two", attempt_at(1, 2, "c2", "failed")}}),
            1U);
}

// `sweep --new-build` made it again: gates, exports and pilots are of the new build.
TEST(GateSide, ARunThatANewBuildMadeAgainCountsOnce) {
  const Json old = attempt_at(1, 1, "c1", "completed");
  Json again = attempt_at(1, 2, "c2", "completed");
  again["provenance"]["commit"] = "0123456";
  const Side side = stored_side({{"a", old}, {"a", again}});
  EXPECT_EQ(side.subjects.at(0).runs, 1U);
  EXPECT_EQ(side.builds.size(), 1U);
  EXPECT_EQ(side.notes.at(0),
            "current: left out: 1 run of earlier builds, which --new-build made again");
  again["repeat"] = 2;
  EXPECT_EQ(stored_side({{"a", old}, {"a", again}}).subjects.at(0).runs, 2U);
}

TEST(GateSide, AttemptsAtOneRunAreOneFailure) {
  const Side side = stored_side({{"a", attempt_at(1, 1, "c1", "failed")},
                                 {"a", attempt_at(1, 2, "c2", "failed")},
                                 {"a", attempt_at(1, 3, "c3", "failed")},
                                 {"a", attempt_at(2, 1, "c3", "preempted")}});
  EXPECT_EQ(side.subjects.at(0).not_ended, 4U);
  EXPECT_EQ(side.subjects.at(0).lost, 1U);
  EXPECT_EQ(side.subjects.at(0).why, "how it failed") << "a preempted run is no failure";
}

// Ending sooner without the goal is no gain.
TEST(GateSide, ARunThatMissesItsGoalDidNotEndWell) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    records[0]["quality"]["until"] = {{"goal", "test_accuracy=0.99"}, {"reached", false}};
    records[2]["quality"]["until"] = {{"goal", "test_accuracy=0.99"}, {"reached", true}};
  });
  EXPECT_EQ(side.subjects[0].runs, 2U);
  EXPECT_EQ(side.subjects[0].lost, 1U);
  EXPECT_EQ(side.subjects[0].why, "it did not reach its goal, test_accuracy=0.99");
  EXPECT_EQ(list_values(side.subjects[0], Quantity::time).size(), 2U);
  EXPECT_EQ(list_values(side.subjects[0], Quantity::accuracy).size(), 2U);
}

TEST(GateSide, PointsOfTwoStudiesHaveTwoNames) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    Json other = records[0];
    other["study"] = "evening";
    other["parameters"]["learning_rate"] = 0.1;
    records.push_back(other);
  });
  ASSERT_EQ(side.subjects.size(), 3U);
  EXPECT_EQ(side.subjects[2].name, side.subjects[0].name + " of evening");
}

// Fewer epochs have a higher mean loss, however good they were.
TEST(GateSide, RunsThatEndWithTheirGoalHaveNoTrajectory) {
  const auto bend = [](bool goal) {
    return [goal](std::vector<Json>& records) {
      records[0]["quality"]["epochs"] = Json::array({{{"train_loss", 0.4}}});
      if (goal)
        records[0]["quality"]["until"] = {{"goal", "test_accuracy>=0.9"}, {"reached", true}};
    };
  };
  EXPECT_EQ(list_values(drifting_side(bend(false)).subjects[0], Quantity::loss).size(), 1U);
  EXPECT_TRUE(list_values(drifting_side(bend(true)).subjects[0], Quantity::loss).empty());
}

// One unit a point: fit seconds where all of its runs have them, else seconds a sample.
TEST(GateSide, TimesOfAPointAreOfOneUnit) {
  const Side all = drifting_side();
  EXPECT_FALSE(all.subjects[0].is_rated);
  EXPECT_NEAR(all.subjects[0].rated.at(0).value, 18.0 / 120000, 1e-12);
  const Side some = drifting_side([](std::vector<Json>& records) {
    for (Json& record : records) record["kind"] = "imported";
    records[2]["timing"] = Json::object();
  });
  EXPECT_TRUE(some.subjects[0].is_rated);
  EXPECT_NEAR(list_values(some.subjects[0], Quantity::time).at(0), 18.0 / 120000, 1e-12);
  // Against the base's seconds a sample, not its seconds.
  EXPECT_NEAR(list_values(some.subjects[1], Quantity::serial_fraction).at(0), 2 / 1.8 - 1, 1e-9);
}

// A program of the user's own may report a rate alone.
TEST(GateSide, ARunWithoutFitSecondsTakesAsLongAsItsProgram) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    for (Json& record : records) {
      record["timing"] = Json::object();
      record["provenance"]["program"] = {{"name", "mine"}, {"seconds", 8}};
    }
  });
  EXPECT_TRUE(side.subjects[0].is_rated);
  EXPECT_NEAR(side.subjects[0].run_seconds, 8, 1e-9);
}

TEST(GateSide, AControlIsNoRun) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    Json control = sample_record({.repeat = 1, .fit_seconds = 99});
    control["parameters"]["control"] = true;
    records.push_back(control);
  });
  ASSERT_EQ(side.subjects.size(), 2U);
  EXPECT_EQ(side.subjects[0].runs, 3U);
}

// Rounds drift by 30 %, but the serial fraction is taken within a round: speed-up 1.8, so
// 2 / 1.8 - 1 = 0.111; 1.8 / 1.01 and 1.8 / 0.99 in the others.
TEST(GateSide, SerialFractionIsOfOneRound) {
  const Side side = drifting_side();
  const std::vector<double> fractions = list_values(side.subjects[1], Quantity::serial_fraction);
  ASSERT_EQ(fractions.size(), 3U);
  EXPECT_NEAR(fractions[0], 2 / 1.8 - 1, 1e-9);
  EXPECT_NEAR(fractions[1], 2 / 1.8 * 1.01 - 1, 1e-9);
  EXPECT_NEAR(fractions[2], 2 / 1.8 * 0.99 - 1, 1e-9);
  EXPECT_EQ(side.subjects[1].base, side.subjects[0].name);
  EXPECT_TRUE(list_values(side.subjects[0], Quantity::serial_fraction).empty());
}

TEST(GateSide, WhatDoesNotCountIsCounted) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    records[0]["flags"]["resumed"] = true;
    records[2]["status"] = "failed";
    records[2]["reason"] = "rank 0 was killed";
    records[5]["quality"]["epochs"] = Json::array({{{"train_loss", nullptr}}});
  });
  EXPECT_EQ(side.subjects[0].runs, 1U);
  EXPECT_EQ(side.subjects[0].left_out, 1U);
  EXPECT_EQ(side.subjects[0].not_ended, 1U);
  EXPECT_EQ(side.subjects[0].why, "rank 0 was killed");
  EXPECT_EQ(side.subjects[1].runs, 2U);
  EXPECT_EQ(side.subjects[1].why, "its loss is not a number");
}

TEST(GateSide, DisturbedRunsNeverCount) {
  for (const char* flag : {"resumed", "throttled", "traced"}) {
    const Side side =
        drifting_side([&](std::vector<Json>& records) { records[0]["flags"][flag] = true; });
    EXPECT_EQ(side.subjects[0].left_out, 1U) << flag;
    EXPECT_EQ(side.subjects[0].runs, 2U) << flag;
  }
}

TEST(GateSide, OversubscribedRunsOnlyWhereThereAreNoOthers) {
  const Side some = drifting_side(
      [](std::vector<Json>& records) { records[0]["flags"]["oversubscribed"] = true; });
  EXPECT_EQ(some.subjects[0].runs, 2U);
  const Side all = drifting_side([](std::vector<Json>& records) {
    for (Json& record : records) record["flags"]["oversubscribed"] = true;
  });
  EXPECT_EQ(all.subjects[0].runs, 3U);
  ASSERT_EQ(all.notes.size(), 2U);
  expect_parts(all.notes[0], {"only oversubscribed runs"});
}

// Losses 0.4 and 0.1: their geometric mean.
TEST(GateSide, LossIsOfTheWholeTrajectory) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    records[0]["quality"]["epochs"] =
        Json::array({{{"train_loss", 0.4}}, {{"train_loss", 0.1}}, {{"train_accuracy", 1.0}}});
  });
  EXPECT_NEAR(list_values(side.subjects[0], Quantity::loss).at(0), 0.2, 1e-12);
}

TEST(GateSide, AnEmptyPlaceIsAnError) {
  const Scratch folder;
  EXPECT_THROW(read_side("baseline", {folder.path()}), Error);
  EXPECT_THROW(read_side("baseline", {folder / "missing"}), Error);
}

// A baseline's point and a current one whose parameters were changed.
Matches matched(const std::function<void(Json&)>& bend, bool one_spec = false) {
  Json before = sample_record(), now = sample_record();
  bend(now);
  return match_subjects(load_side("baseline", canonical_content({before})),
                        load_side("current", canonical_content({now})), one_spec);
}

TEST(GateMatch, ParametersMustAgree) {
  EXPECT_TRUE(matched([](Json& record) { record["parameters"]["seed"] = 7; }).of_baseline[0]);
  const Matches newer = matched([](Json& record) { record["parameters"]["check_every"] = 0; });
  EXPECT_TRUE(newer.of_baseline[0]);
  ASSERT_EQ(newer.notes.size(), 1U);
  const auto longer = [](Json& record) { record["parameters"]["epochs"] = 5; };
  const Matches changed = matched(longer);
  EXPECT_FALSE(changed.of_baseline[0]);
  ASSERT_EQ(changed.notes.size(), 2U);
  expect_parts(changed.notes[0], {"epochs was 2, is 5"});
  EXPECT_TRUE(matched(longer, true).of_baseline[0]) << "the same spec: a default has changed";
  EXPECT_FALSE(
      matched([](Json& record) { record["parameters"]["workload"] = "other"; }).of_baseline[0]);
}

// Its commit and files say which build it was; how it is started is said.
TEST(GateMatch, AProgramIsMatchedByItsName) {
  const auto notes = [](const std::string& tag, bool one_spec) {
    Json before = sample_record(), now = sample_record();
    before["parameters"]["program"] = "train@0123456789abcdef";
    now["parameters"]["program"] = tag;
    const Matches matches =
        match_subjects(load_side("baseline", canonical_content({before})),
                       load_side("current", canonical_content({now})), one_spec);
    EXPECT_EQ(matches.of_baseline[0].has_value(), tag.starts_with("train@")) << tag;
    return join(matches.notes, "\n");
  };
  EXPECT_EQ(notes("train@0123456789abcdef", false), "");
  expect_parts(notes("train@fedcba9876543210", false), {"in another way than before"});
  EXPECT_EQ(notes("train@fedcba9876543210", true), "") << "two commands of a gate differ";
  expect_parts(notes("other@0123456789abcdef", false), {"not in the baseline"});
}

// What the baseline did not record may have been either.
TEST(GateMatch, TwoThatAreEquallyNearAreNone) {
  const Json before = sample_record();
  Json with = before, without = before;
  with["parameters"]["overlap"] = true;
  with["point"] = "overlap=true";
  without["parameters"]["overlap"] = false;
  without["point"] = "overlap=false";
  const Matches matches =
      match_subjects(load_side("baseline", canonical_content({before})),
                     load_side("current", canonical_content({without, with})), false);
  EXPECT_FALSE(matches.of_baseline[0]);
  expect_parts(matches.notes.at(0), {"it may be"});
}

const char kBenchmarks[] = R"({
  "context": {"date": "2026-11-21", "host_name": "node1", "num_cpus": 2},
  "benchmarks": [
    {"name": "BM_sum/8", "run_name": "BM_sum/8", "run_type": "iteration", "real_time": 1.5,
     "time_unit": "us"},
    {"name": "BM_sum/8", "run_name": "BM_sum/8", "run_type": "iteration", "real_time": 1.7,
     "time_unit": "us"},
    {"name": "BM_sum/8_mean", "run_name": "BM_sum/8", "run_type": "aggregate", "real_time": 1.6,
     "time_unit": "us"},
    {"name": "BM_bad", "run_type": "iteration", "error_occurred": true, "error_message": "no GPU"},
    {"name": "BM_gone", "run_type": "iteration", "skipped": true, "skip_message": "no GPU",
     "real_time": 0, "time_unit": "ns"}
  ]
})";

TEST(GateGoogleBenchmark, RepetitionsAreRuns) {
  const Scratch folder;
  std::ofstream(folder / "a.json") << kBenchmarks;
  std::ofstream(folder / "b.json") << kBenchmarks;
  std::ofstream(folder / "notes.txt") << "mine";
  const Side side = read_side("baseline", {folder.path()});
  ASSERT_EQ(side.subjects.size(), 3U);
  EXPECT_EQ(side.subjects[0].name, "BM_sum/8");
  EXPECT_EQ(side.subjects[0].runs, 4U);
  EXPECT_NEAR(list_values(side.subjects[0], Quantity::time).at(1), 1.7e-6, 1e-15);
  const auto& times = side.subjects[0].samples.at(Quantity::time);
  EXPECT_NE(times.front().session, times.back().session) << "each file is a session";
  EXPECT_EQ(side.machines, (std::set<std::string>{"host node1", "2 CPUs"}));
  EXPECT_EQ(side.subjects[1].why, "no GPU");
  EXPECT_EQ(side.subjects[1].not_ended, 2U) << "of both files";
  EXPECT_EQ(side.subjects[2].left_out, 2U);
  EXPECT_THROW(read_side("baseline", {folder.path()}, read_side("current", {folder.path()})),
               Error);
  const Side rest =
      read_side("baseline", {folder.path()}, read_side("current", {folder / "b.json"}));
  EXPECT_EQ(rest.subjects[0].runs, 2U);
}

// As versions before 1.4 wrote them: no run_type.
TEST(GateGoogleBenchmark, AggregatesOfOldVersionsAreKnownByTheirNames) {
  const Scratch folder;
  std::ofstream(folder / "old.json") << R"({"benchmarks": [
    {"name": "BM_a", "real_time": 10, "time_unit": "ns"},
    {"name": "BM_a", "real_time": 12, "time_unit": "ns"},
    {"name": "BM_a_mean", "real_time": 11, "time_unit": "ns"},
    {"name": "BM_a_stddev", "real_time": 1, "time_unit": "ns"},
    {"name": "BM_a_BigO", "cpu_coefficient": 1, "real_coefficient": 1, "big_o": "N"},
    {"name": "BM_a_RMS", "rms": 0.1},
    {"name": "BM_geometric_mean", "real_time": 9, "time_unit": "ns"}]})";
  const Side side = read_google_benchmark("baseline", folder / "old.json");
  ASSERT_EQ(side.subjects.size(), 2U);
  EXPECT_EQ(side.subjects[0].runs, 2U);
  EXPECT_EQ(side.subjects[1].name, "BM_geometric_mean") << "a benchmark of that name";
}

TEST(GateGoogleBenchmark, OneThatTookNoTimeIsLeftOutWithANote) {
  const Scratch folder;
  std::ofstream(folder / "a.json") << R"({"benchmarks": [
    {"name": "BM_a", "real_time": 0, "time_unit": "ns"},
    {"name": "BM_b", "real_time": 12, "time_unit": "ns"}]})";
  const Side side = read_side("current", {folder / "a.json"});
  ASSERT_EQ(side.subjects.size(), 2U);
  EXPECT_EQ(side.subjects[0].left_out, 1U);
  EXPECT_EQ(side.subjects[1].runs, 1U);
  ASSERT_EQ(side.notes.size(), 1U);
  expect_parts(side.notes[0], {"\"BM_a\" took no time"});
}

TEST(GateGoogleBenchmark, WhatIsAnotherFileIsReported) {
  const TemporaryFolder folder;
  const auto refuse = [&](const char* text, const std::vector<std::string>& parts) {
    std::ofstream(folder / "x.json") << text;
    expect_error(ErrorKind::input, parts, [&] { read_side("current", {folder / "x.json"}); });
  };
  refuse(R"({"benchmarks": [
    {"name": "BM_a_mean", "run_name": "BM_a", "run_type": "aggregate", "real_time": 11}]})",
         {"only aggregates", "without --benchmark_report_aggregates_only"});
  refuse(R"({"benchmarks": [
    {"name": "BM_a_mean", "real_time": 11}, {"name": "BM_a_stddev", "real_time": 1}]})",
         {"only aggregates"});
  refuse(R"({"machine_info": {}, "benchmarks": [
    {"name": "test_fib_10", "stats": {"mean": 1e-5, "rounds": 7}}]})",
         {"is pytest-benchmark's JSON"});
}

TEST(GateGoogleBenchmark, BadFilesAreNamed) {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    SCOPED_TRACE(text);
    std::ofstream(folder / "x.json") << text;
    expect_error(ErrorKind::input, parts,
                 [&] { read_google_benchmark("baseline", folder / "x.json"); });
  };
  for (const auto& [row, part] :
       {std::pair{R"({"name": "a"})", "has no real_time"},
        {R"({"name": "a", "real_time": -1})", "not positive"},
        {R"({"name": "a", "real_time": 1, "time_unit": "h"})", "time_unit"},
        {R"({"name": "a", "real_time": 1, "time_unit": 5})", "time_unit"},
        {"{}", "no name"},
        {"{}", "x.json:2"},
        {"7", "no name"}}) {
    refuse(std::string("{\"benchmarks\": [\n") + row + "\n]}", {part});
  }
  for (const char* other : {"{}", "[]", "{\"benchmarks\": {}}", "{\"context\": {}}"}) {
    refuse(other, {"no list of benchmarks"});
  }
}

TEST(GateExport, GithubActionHasAnEntryAPoint) {
  const Json rows = Json::parse(github_action_json(drifting_side()));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["unit"], "s");
  EXPECT_NEAR(rows[0]["value"].get<double>(), 18 * std::cbrt(1.3 * 0.8), 1e-9);
  EXPECT_TRUE(rows[0]["range"].get<std::string>().starts_with("± ")) << rows[0].dump();
  EXPECT_EQ(rows[0]["extra"], "3 runs");
}

TEST(GateExport, MetricsHaveALabelForEachAxis) {
  std::vector<Json> records = drifting_study();
  for (Json& json : records) {
    json["point"] = json["point"].get<std::string>() + ",bucket_mb=8.0";
    json["parameters"]["bucket_mb"] = 8.0;
  }
  const StoreContent content = canonical_content(records);
  const std::string metrics = open_metrics(load_side("study", content), make_studies(content));
  const std::string labels =
      ",workload=\"mnist-cnn\",gpus=\"2\",cpus_per_task=\"1\",backend=\"mpi\",bucket_mb=\"8\"} ";
  expect_parts(metrics, {labels, "\n# TYPE paceline_speed_up gauge\n", "\npaceline_speed_up_low{",
                         "\n# TYPE paceline_efficiency gauge\n"});
  EXPECT_EQ(open_metrics(load_side("study", content)).find("speed_up"), std::string::npos);
  // What trained worse than its base has no speed-up.
  for (Json& json : records) {
    if (json["parameters"]["gpus"] == 2) json["quality"]["test_accuracy"] = 0.5;
  }
  const StoreContent worse = canonical_content(records);
  const std::string without = open_metrics(load_side("study", worse), make_studies(worse));
  const auto at = without.find("paceline_speed_up{");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(without.find("gpus=\"2\"", at),
            without.find("gpus=\"2\"", without.find("paceline_runs{")))
      << without;
}

TEST(GateExport, NamesProgramStudyAndUnit) {
  const Side side = drifting_side([](std::vector<Json>& records) {
    for (Json& json : records) {
      json["kind"] = "imported";
      json["parameters"]["workload"] = "command";
      json["study"] = "nightly";
      json["parameters"]["program"] = "solver@3f9a12cd3f9a12cd";
      if (json["parameters"]["gpus"] == 2) json["timing"].erase("fit_seconds");
    }
  });
  const std::string metrics = open_metrics(side);
  expect_parts(metrics,
               {"\npaceline_seconds{study=\"nightly\",name=\"nightly solver gpus=1,",
                "# TYPE paceline_seconds_per_sample gauge\n"
                "# HELP paceline_seconds_per_sample mean seconds of a sample",
                "\npaceline_seconds_per_sample{study=\"nightly\",name=\"nightly solver gpus=2,"});
  const Json rows = Json::parse(github_action_json(side));
  EXPECT_EQ(rows.at(0).at("unit"), "s");
  EXPECT_EQ(rows.at(1).at("unit"), "s/sample");
  EXPECT_TRUE(is_export(metrics) && is_export(rows.dump()));
}

}  // namespace
}  // namespace paceline
