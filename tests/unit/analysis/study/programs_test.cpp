// Several programs of the user's own in one study: what they are compared with, and their names.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "analysis/gate/judge.h"
#include "analysis/gate/render.h"
#include "analysis/gate/report_sides.h"
#include "analysis/study/labels.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

std::string tag_program(const std::string& program) {
  return program + "@3f9a12cd3f9a12cd";
}

// Four rounds of two programs. "fast" takes half the time of "slow", which stands first in the spec
// and divides its replicas into tasks.
std::vector<Json> contest(const std::vector<int>& sizes) {
  const double drift[] = {1, 1.2, 0.9, 1.1}, noise[] = {1.004, 0.996, 1.001, 0.999};
  std::vector<Json> records;
  for (const int gpus : sizes) {
    for (const std::string program : {"slow", "fast"}) {
      for (int round = 1; round <= 4; ++round) {
        const bool is_fast = program == "fast";
        const double seconds = 20 * drift[round - 1] / gpus;
        Json run = sample_record({.gpus = gpus,
                                  .repeat = round,
                                  .fit_seconds = is_fast ? seconds / 2 * noise[round - 1] : seconds,
                                  .backend = is_fast ? "mirrored" : "mpi"});
        run["study"] = "contest";
        run["point"] = "gpus=" + std::to_string(gpus) + ",program=" + program;
        run["provenance"]["program"] = {{"name", program}};
        Json& parameters = run["parameters"];
        parameters["workload"] = "command";
        parameters["program"] = tag_program(program);
        parameters["processes"] = is_fast ? "one" : "replica";
        parameters.erase("backend");
        records.push_back(run);
      }
    }
  }
  return records;
}

ExpectedRuns plan_of_contest(const std::vector<std::int64_t>& sizes) {
  ExpectedRuns plan{"contest", "command", 4, {}};
  for (const std::string program : {"slow", "fast"}) {
    for (const std::int64_t gpus : sizes) {
      Point& point = plan.points.emplace_back();
      point.set("gpus", gpus);
      point.set("cpus_per_task", program == "fast" ? gpus : 1);
      point.set("program", tag_program(program));
      point.set("processes", std::string(program == "fast" ? "one" : "replica"));
    }
  }
  return plan;
}

Study make_contest_study(const std::vector<Json>& records,
                         const std::vector<ExpectedRuns>& plans = {},
                         const std::vector<Selection>& only = {}) {
  return make_studies(canonical_content(records), only, plans).at(0);
}

std::size_t find_row(const Section& section, const std::string& program, int gpus) {
  for (std::size_t i = 0; i < section.table.rows.size(); ++i) {
    if (testing::cell(section, i, "program").text == program &&
        testing::cell(section, i, "gpus").value == gpus) {
      return i;
    }
  }
  throw std::runtime_error("no row of " + program);
}

std::string find_heading(const Section& section, const std::string& key) {
  for (const Column& column : section.table.columns) {
    if (column.key == key) return column.heading;
  }
  return "";
}

TEST(Programs, TheFirstOfTheSpecIsTheReference) {
  EXPECT_EQ(make_contest_study(contest({1, 2}), {plan_of_contest({1, 2})}).reference, "slow");
  EXPECT_EQ(make_contest_study(contest({1, 2})).reference, "fast")
      << "by name, where no plan is known";
  EXPECT_EQ(make_contest_study(contest({1, 2}), {}, {{"program", {"fast"}}}).reference, "")
      << "a lone one";
  EXPECT_EQ(make_contest_study(drifting_study()).reference, "");
}

TEST(Programs, OfOneSizeAreComparedWithTheReference) {
  EXPECT_EQ(default_base(make_contest_study(contest({2}), {plan_of_contest({2})})),
            Base("program", "slow"));
  std::vector<Json> two_axes = contest({2});
  for (Json run : contest({2})) {
    run["parameters"]["input_threads"] = 3;
    two_axes.push_back(run);
  }
  EXPECT_EQ(default_base(make_contest_study(two_axes)), Base("program", "fast"));
  const Section section =
      report_section(contest({2}), Base("program", "slow"), {plan_of_contest({2})});
  EXPECT_NEAR(*testing::cell(section, find_row(section, "fast", 2), "speed_up").value, 2, 0.01);
  EXPECT_EQ(find_heading(section, "against_reference"), "") << "the speed-up says it";
}

TEST(Programs, OfSeveralSizesHaveAColumnAgainstTheReference) {
  const Section section = report_section(contest({1, 2}), Base::matched, {plan_of_contest({1, 2})});
  EXPECT_EQ(section.facts->at("reference_program"), "slow");
  EXPECT_EQ(find_heading(section, "against_reference"), "against\nslow");
  EXPECT_TRUE(is_shown(section, "against_reference"));
  for (const int gpus : {1, 2}) {
    const std::size_t fast = find_row(section, "fast", gpus);
    const Cell against = testing::cell(section, fast, "against_reference");
    EXPECT_NEAR(against.value.value_or(0), 2, 0.01) << gpus;
    ASSERT_TRUE(against.interval) << gpus;
    EXPECT_LT(against.interval->high, 2.05) << "drift of rounds must not count";
    EXPECT_NEAR(testing::cell(section, fast, "speed_up").value.value_or(0), gpus, 1e-9);
    EXPECT_EQ(testing::cell(section, find_row(section, "slow", gpus), "against_reference").value,
              1);
  }
  EXPECT_NE(join(section.notes, "\n")
                .find("against slow: speed-up over program slow at the same "
                      "point, by fit seconds; paired intervals"),
            std::string::npos)
      << join(section.notes, "\n");
  EXPECT_EQ(join(section.notes, "\n").find("backend"), std::string::npos) << "they have none";
}

TEST(Programs, NoneThatMatchesHasNoColumn) {
  std::vector<Json> records = contest({1, 2});
  for (Json& run : records) {
    if (run["provenance"]["program"]["name"] == "slow") continue;
    run["parameters"]["cpus_per_task"] = run["layout"]["cpus_per_task"] =
        2 * run["layout"]["cpus_per_task"].get<int>();
    run["layout"]["cpus_per_replica"] = 2;
  }
  const Section section = report_section(records);
  EXPECT_EQ(find_heading(section, "against_reference"), "");
  expect_no_parts(join(section.notes, "\n"), {"against fast"});
}

TEST(Programs, StandUnderTheirStudyInTables) {
  EXPECT_TRUE(study_title(make_contest_study(contest({1, 2}))).starts_with("contest, fp32"));
  EXPECT_TRUE(study_title(make_contest_study(contest({1, 2}), {}, {{"program", {"fast"}}}))
                  .starts_with("fast, fp32"));
}

TEST(Programs, OfAChangedRecipeAreNotReported) {
  std::vector<Json> records = contest({1, 2});
  ExpectedRuns plan = plan_of_contest({1, 2});
  for (Point& point : plan.points) {
    if (point.text("program") == tag_program("fast")) point.set("program", std::string("fast@0"));
  }
  const Study study = make_contest_study(records, {plan});
  ASSERT_EQ(study.rows.size(), 2U);
  for (const Row& row : study.rows) EXPECT_EQ(row.first()->parameters.text("program"), "slow");
  ASSERT_EQ(study.gaps.size(), 2U);
  EXPECT_EQ(study.gaps[0].first()->parameters.text("program"), "fast");
  EXPECT_EQ(study.axes, (std::vector<std::string>{"program"}));
}

// "train" at one and two replicas, in a study.
std::vector<Json> program_runs(const std::string& study, const std::string& recipe,
                               const std::string& hash = "1") {
  std::vector<Json> records;
  for (const int gpus : {1, 2}) {
    for (int round = 1; round <= 3; ++round) {
      Json run = sample_record({.gpus = gpus, .repeat = round, .fit_seconds = 20.0 / gpus});
      run["study"] = study;
      run["session"] = study + hash;
      run["point"] = "gpus=" + std::to_string(gpus);
      run["provenance"]["program"] = {{"name", "train"}, {"directory", "/x"}, {"files_hash", hash}};
      run["provenance"]["command"] = "/usr/bin/python3.11 ./train.py --gpus 1";
      run["provenance"]["started_at"] =
          "2026-01-0" + std::to_string(round) + "T00:00:0" + std::to_string(gpus) + "Z";
      run["parameters"]["workload"] = "command";
      run["parameters"]["program"] = "train@" + recipe;
      records.push_back(run);
    }
  }
  return records;
}

TEST(Programs, AreComparedWithinAStudyOnly) {
  std::vector<Json> records = contest({1, 2});
  for (const Json& run : program_runs("own", "1")) records.push_back(run);
  for (const Json& run : program_runs("theirs", "2")) records.push_back(run);
  for (const Pooling pooling : {Pooling::by_sessions, Pooling::always}) {
    const auto studies = make_studies(canonical_content(records), {}, {}, pooling);
    ASSERT_EQ(studies.size(), 3U);
    EXPECT_EQ(studies[1].work, (Work{{"study", "own"}}));
    EXPECT_EQ(studies[1].reference, "");
  }
  const auto side = [](const std::string& name, const std::vector<Json>& runs) {
    return ReportSide{name, canonical_content(runs), make_studies(canonical_content(runs))};
  };
  const ReportSide own = side("own", program_runs("own", "1"));
  EXPECT_FALSE(compare_sides(own, side("theirs", program_runs("theirs", "2"))));
  EXPECT_TRUE(compare_sides(own, side("copy", program_runs("copy", "1"))));
  EXPECT_TRUE(compare_sides(own, side("edited", program_runs("own", "2", "2"))));
  // A gate of several studies; two that are named one by one are what the user wants compared.
  std::vector<Json> both = program_runs("own", "1");
  for (const Json& run : program_runs("theirs", "2")) both.push_back(run);
  const auto matched = [](const std::vector<Json>& before, const std::vector<Json>& now) {
    const Side baseline = load_side("baseline", canonical_content(before));
    const Side current = load_side("current", canonical_content(now));
    std::string studies;
    const Matches matches = match_subjects(baseline, current);
    for (std::size_t i = 0; i < baseline.subjects.size(); ++i) {
      const auto k = matches.of_baseline[i];
      studies += *baseline.subjects[i].studies.begin() + ":" +
                 (k ? *current.subjects[*k].studies.begin() : "") + " ";
    }
    return studies;
  };
  EXPECT_EQ(matched(both, program_runs("theirs", "2")), "own: own: theirs:theirs theirs:theirs ");
  EXPECT_EQ(matched(program_runs("own", "1"), program_runs("theirs", "2")),
            "own:theirs own:theirs ");
}

TEST(Programs, RowsOfAnOlderStateAreMarked) {
  const auto make = [](const std::vector<Json>& records, const std::string& hash,
                       const std::string& directory = "/x") {
    ExpectedRuns plan{"own", "command", 3, {planned_point(1)}};
    plan.programs.emplace_back();
    plan.programs[0].name = "train";
    plan.programs[0].directory = directory;
    plan.programs[0].files_hash = hash;
    plan.seen_at = "2026-02-01T00:00:00Z";
    return make_studies(canonical_content(records), {}, {plan}).at(0);
  };
  std::vector<Json> records = program_runs("own", "1");
  const Study older = make(records, "2");
  EXPECT_EQ(common_label(older), "of an older train.py");
  expect_parts(join(older.warnings, "\n"),
               {"the program (train.py) has changed since 6 of these 6 runs; sweep --new-build"});
  expect_parts(best_text(older, find_best(older, 0.05)), {"of an older train.py"});
  for (const Study& study : {make(records, "1"), make(records, "2", "/another/site")}) {
    EXPECT_EQ(common_label(study), "");
    EXPECT_TRUE(study.warnings.empty());
  }
  records[5]["provenance"]["program"]["files_hash"] = "2";
  EXPECT_EQ(row_label(make(records, "2").rows[1]), "2 of 3 runs of an older train.py");
  for (Json& run : records) run["provenance"]["started_at"] = "2026-03-01T00:00:00Z";
  EXPECT_EQ(row_label(make(records, "3").rows[1]), "") << "made after the plan";
}

TEST(Programs, ExportsNameStudyAndProgram) {
  const auto load = [](const std::string& name) {
    return load_side(name, canonical_content(contest({1, 2})));
  };
  const Side side = load("current");
  const std::set<std::string> names = {"contest gpus=1,program=slow", "contest gpus=2,program=slow",
                                       "contest gpus=1,program=fast",
                                       "contest gpus=2,program=fast"};
  std::set<std::string> of_action;
  for (const Json& row : Json::parse(github_action_json(side))) of_action.insert(row["name"]);
  EXPECT_EQ(of_action, names);
  const std::string metrics = open_metrics(side);
  const std::string junit = gate_junit(judge(load("baseline"), side, {}), {});
  for (const std::string& name : names) {
    expect_parts(metrics, {"paceline_seconds{study=\"contest\",name=\"" + name +
                           "\",workload=\"command\","});
    expect_parts(junit, {"<testcase classname=\"paceline.gate.time\" name=\"" + name + "\""});
  }
}

TEST(Programs, TheNameOfAPointSaysStudyAndProgramOnce) {
  Point train;
  train.set("program", tag_program("train"));
  EXPECT_EQ(subject_name("nightly", "command", train, "gpus=2"), "nightly train gpus=2");
  EXPECT_EQ(subject_name("train", "command", train, "gpus=2"), "train gpus=2");
  EXPECT_EQ(subject_name("", "command", train, ""), "train");
  EXPECT_EQ(subject_name("nightly", "command", train, "gpus=2,program=train"),
            "nightly gpus=2,program=train");
  EXPECT_EQ(subject_name("quick", "mnist-cnn", {}, "gpus=2"), "mnist-cnn gpus=2");
}

}  // namespace
}  // namespace paceline
