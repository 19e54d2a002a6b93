#include "analysis/table/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/csv.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

TEST(Table, HasTheNumbersOfTheRecords) {
  const Section section = report_section(drifting_study());
  EXPECT_EQ(section.title, "mnist-cnn, fp32, fixed-epochs scaling");
  EXPECT_EQ(section.facts->at("interval"), "paired");
  EXPECT_EQ(cell(section, 1, "ntasks").text, "2");
  EXPECT_EQ(cell(section, 1, "speed_up").text, "1.80 ±0.05");
  EXPECT_EQ(cell(section, 1, "efficiency").text, "90.0 ±2.3 %");
  EXPECT_EQ(cell(section, 1, "karp_flatt").text, "0.111 [0.084, 0.139]");
  EXPECT_TRUE(cell(section, 1, "karp_flatt").interval);
  EXPECT_EQ(cell(section, 1, "input_stall").text, "2.0 %");
  EXPECT_EQ(cell(section, 1, "exposed_communication").text, "8.0 %");
  EXPECT_EQ(cell(section, 1, "test_accuracy").text, "98.40 %");
  EXPECT_EQ(cell(section, 1, "step_seconds").text, "5.000");
  EXPECT_DOUBLE_EQ(*cell(section, 1, "step_seconds").value, 0.005);
  // Three runs that differ by 60 %: an interval as wide as this is not symmetric.
  expect_parts(cell(section, 0, "fit_seconds").text, {" ["});
  EXPECT_FALSE(is_shown(section, "gpu_utilization"));
  EXPECT_EQ(cell(section, 0, "point").text, "1 replica");
  EXPECT_EQ(cell(section, 0, "verdict").text, "base");
  EXPECT_EQ(cell(section, 1, "verdict").text, "faster");
  EXPECT_TRUE(is_shown(section, "cpus_per_replica"));
}

// The larger side, not half: [94.3, 129.5] about 110.5. Beyond a quarter both ends are given.
TEST(Table, AMarginIsTheLargerSide) {
  EXPECT_EQ(estimate_cell({110.5, Interval{94.3, 129.5}, 5}, 1).text, "110 ±19");
  EXPECT_EQ(estimate_cell({0.083, Interval{-0.04, 0.22}, 5}, 2).text, "0.08 [-0.04, 0.22]");
  EXPECT_EQ(estimate_cell({-10, Interval{-11, -9}, 5}, 1).text, "-10.0 ±1.0");
  EXPECT_EQ(estimate_cell({0.021, Interval{0.0004, 5.8}, 2}, 3).text, "0.02 [0.00, 5.80]");
  EXPECT_EQ(estimate_cell({2.4, Interval{0.1, 420}, 2}, 1).text, "2 [0, 420]");
  EXPECT_EQ(estimate_cell({-0.004, Interval{-0.2, 0.2}, 5}, 2).text, "0.00 [-0.20, 0.20]");
}

TEST(Table, EqualRunsHaveNoMarginOfRounding) {
  EXPECT_EQ(estimate_cell({32.5, Interval{32.5 - 1e-14, 32.5 + 1e-14}, 5}, 2).text, "32.50");
  EXPECT_EQ(estimate_cell({32.5, Interval{32.4999, 32.5001}, 5}, 2).text, "32.50 ±0.0001");
}

// What all rows share is said below, then details go, and what is left out is named.
TEST(Table, ANarrowTerminalGetsFewerColumns) {
  const Section section = report_section(drifting_study());
  const auto table_width = [](const std::string& text) {
    std::size_t width = 0;
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with("---")) width = line.size();
    }
    return width;
  };
  const Document document = report_document({section});
  const std::string all = to_text(document), narrow = to_text(document, {.terminal_width = 80});
  EXPECT_GT(table_width(all), 120U);
  EXPECT_LE(table_width(narrow), 80U);
  EXPECT_GT(table_width(narrow), 60U) << "no more than has to go";
  expect_parts(narrow, {"in all rows: runs 3, ", "not shown at 80 columns: ntasks, gpus, "});
  expect_parts(narrow, {"point", "seconds", "speed-up", "efficiency", "verdict"});
  EXPECT_EQ(to_text(document, {.terminal_width = 1000}), all);
}

// A column that only one table has stands in its place; the last says whose a line is.
TEST(Table, CsvOfSeveralTablesIsOneTable) {
  auto records = drifting_study();
  const Section plain = report_section(records);
  for (Json& json : records) json["parameters"]["workload"] = "mnist-mlp";
  Json other = records[1];
  other["parameters"]["bucket_mb"] = 4.0;
  records.push_back(other);
  const std::string text = to_csv(report_document({plain, report_section(records)}));
  const auto csv = parse_csv(text, "csv");
  ASSERT_EQ(csv.size(), 6U) << text;
  const auto& header = csv[0].cells;
  const auto at = std::find(header.begin(), header.end(), "bucket_mb") - header.begin();
  ASSERT_LT(at, std::ssize(header));
  const auto bucket = static_cast<std::size_t>(at);
  EXPECT_EQ(header[bucket - 1], "system");
  EXPECT_EQ(header.back(), "table");
  EXPECT_EQ(csv[1].cells[bucket], "");
  EXPECT_EQ(csv[4].cells[bucket], "");
  EXPECT_EQ(csv[5].cells[bucket], "4");
  EXPECT_EQ(csv[1].cells.back(), "mnist-cnn, fp32, fixed-epochs scaling");
  EXPECT_EQ(csv[5].cells.back(), "mnist-mlp, fp32, fixed-epochs scaling");
  expect_no_parts(to_csv(report_document({plain})), {",table\n"});
}

TEST(Table, ReportsWhichRunsReachedTheirGoal) {
  auto records = drifting_study();
  for (Json& json : records) {
    const int gpus = json["layout"]["gpus"];
    json["quality"]["test_top5"] = 0.999;
    json["quality"]["until"] = {
        {"goal", "test_accuracy>=0.98"}, {"reached", gpus == 1}, {"epochs", 3}};
    if (gpus == 2) json["throughput"]["samples"] = 300000;  // it needed more
  }
  const Section section = report_section(records);
  EXPECT_EQ(cell(section, 0, "epochs_to_goal").text, "3.0");
  EXPECT_EQ(cell(section, 1, "epochs_to_goal").text, "");
  EXPECT_EQ(cell(section, 1, "label").text, "goal not reached");
  records[3]["quality"]["until"]["reached"] = true;
  EXPECT_EQ(cell(report_section(records), 1, "label").text, "goal not reached in 2 of 3 runs");
  EXPECT_EQ(cell(section, 0, "test_top5").text, "99.90 %");
  bool said = false;
  for (const std::string& note : section.notes) {
    said = said || note.find("first evaluation of test_accuracy>=0.98") != std::string::npos;
  }
  EXPECT_TRUE(said);
  EXPECT_FALSE(is_shown(report_section(drifting_study()), "epochs_to_goal"));
}

bool says(const Section& section, const std::string& text) {
  return join(all_notes(section), "\n").find(text) != std::string::npos;
}

Json make_load(bool busy) {
  return {{"busy", busy},
          {"why", busy ? "18 % of the time of its CPUs went to other processes" : ""}};
}

TEST(Table, AMachineThatWasAlwaysBusyIsNotCalledFree) {
  auto records = drifting_study();
  for (Json& json : records) json["provenance"]["machine_load"] = make_load(true);
  EXPECT_FALSE(says(report_section(records), "other processes used"));
  records[0]["provenance"].erase("machine_load");
  EXPECT_TRUE(says(report_section(records), "not recorded for 1 run"));
  EXPECT_FALSE(says(report_section(records), "less than 5 %"));
}

TEST(Table, ARateThatAPageGivesIsNotLeftOut) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4}) {
    Json json = sample_record({.gpus = gpus, .fit_seconds = 10.0 / gpus});
    json["kind"] = "published";
    json["provenance"] = {{"source", "a page"}, {"time_is", "time"}, {"rate_is", "rate"}};
    json["throughput"] = {{"samples_per_second", 12000 * gpus}};
    json.erase("phases");
    json.erase("flags");
    records.push_back(json);
  }
  const Section section = report_section(records);
  EXPECT_EQ(section.facts->at("scaling"), "fixed-epochs");
  expect_parts(findings_text(section), {"the published table does not state efficiency"});
}

// Of 4096 replicas a fraction of 0.0001 halves the efficiency nearly.
TEST(Table, SmallFractionsHaveThreeDigits) {
  std::vector<Json> records;
  for (const int gpus : {1, 4096}) {
    records.push_back(sample_record({.gpus = gpus, .fit_seconds = 10.0 / gpus}));
  }
  records[1]["throughput"]["steps"] = 1;
  records[1]["timing"]["fit_seconds"] = 10.0 / 4096 * (1 + 4095 * 1.2e-4);
  const Section section = report_section(records);
  EXPECT_EQ(cell(section, 1, "karp_flatt").text, "0.000120");
  expect_parts(findings_text(section), {"Karp-Flatt 0.000120"});
}

TEST(Table, ABusyMachineIsReportedFirstAndExcludesNothing) {
  auto records = drifting_study();
  EXPECT_TRUE(says(report_section(records), "the load of other processes is not recorded"));
  for (Json& json : records) json["provenance"]["machine_load"] = make_load(false);
  const Section free = report_section(records);
  EXPECT_TRUE(free.warnings.empty());
  EXPECT_TRUE(says(free, "other processes used less than 5 % of the CPUs in all runs"));
  EXPECT_EQ(cell(free, 0, "busy_runs").value, 0.0);
  EXPECT_FALSE(is_shown(free, "busy_runs"));

  records[1]["provenance"]["machine_load"] = make_load(true);  // of two replicas
  records[0]["provenance"].erase("machine_load");
  const Section busy = report_section(records);
  ASSERT_EQ(busy.warnings.size(), 1U);
  EXPECT_EQ(busy.warnings[0],
            "the machine was busy in 1 of 6 runs (e.g. 18 % of the time of its CPUs went to other "
            "processes); times and speed-ups of these are not those of an idle machine");
  EXPECT_TRUE(says(busy, "in 4 of 5 runs; not recorded for 1 run"));
  EXPECT_EQ(cell(busy, 1, "busy_runs").value, 1.0);
  EXPECT_EQ(cell(busy, 1, "label").text, "busy in 1 of 3 runs");
  EXPECT_EQ(cell(busy, 0, "label").text, "");
  EXPECT_EQ(cell(busy, 1, "runs").value, 3.0);
  const std::string first = "Warning: the machine was busy in 1 of 6 runs";
  const Document document = report_document({busy});
  EXPECT_TRUE(to_text(document).starts_with("quick\n" + first)) << to_text(document);
  EXPECT_TRUE(to_markdown(document).starts_with("# quick\n\n**" + first)) << to_markdown(document);
  EXPECT_EQ(Json::parse(to_json_text(document))["tables"][0]["warnings"][0], busy.warnings[0]);
  expect_parts(to_csv(document), {"busy_runs"});
  expect_parts(to_html(document), {"<p class=\"warning\">" + first});
}

TEST(Table, ReportsWhatItsClocksHold) {
  auto records = drifting_study();
  EXPECT_TRUE(says(report_section(records), "with choice of algorithms and first epoch, without"));
  EXPECT_TRUE(says(report_section(records), "choice of algorithms and the first 10 steps"));
  records[1]["throughput"]["warmup_steps_excluded"] = 0;
  EXPECT_TRUE(says(report_section(records), "the first 0 to 10 steps"));
  for (Json& json : records) {
    json["throughput"]["warmup_steps_excluded"] = json["timing"]["warmup_steps_excluded"] = 0;
  }
  EXPECT_FALSE(says(report_section(records), "the first"));
}

TEST(Table, ReportsWhichGpuRunsMeasuredTheirChoices) {
  auto records = drifting_study();
  records[0]["timing"]["compile_seconds"] = 4;
  EXPECT_FALSE(says(report_section(records), "longer to choose algorithms"));  // cores keep none
  for (Json& json : records) json["layout"]["replicas_are"] = "gpus";
  EXPECT_TRUE(says(report_section(records),
                   "some runs of 1 row took up to 3.99 s longer to choose algorithms"));
}

TEST(Table, LabelsAreInTheTitleOrInAColumn) {
  auto records = drifting_study();
  for (Json& json : records) json["flags"]["synthetic"] = true;
  expect_parts(report_section(records).title, {"(synthetic)"});
  Json json = sample_record({.gpus = 4});
  json["flags"]["oversubscribed"] = true;
  records.push_back(json);
  const Section section = report_section(records);
  expect_no_parts(section.title, {"synthetic"});
  EXPECT_EQ(cell(section, 0, "label").text, "synthetic");
  EXPECT_EQ(cell(section, 2, "label").text, "oversubscribed");
  EXPECT_TRUE(is_shown(section, "verdict"));
}

TEST(Table, UnlikeIntervalsAreReportedRowByRow) {
  auto records = drifting_study();
  for (int repeat = 1; repeat <= 2; ++repeat) {
    records.push_back(sample_record(
        {.gpus = 4, .repeat = repeat, .round = 10 + repeat, .fit_seconds = 5.0 + repeat}));
  }
  const Section section = report_section(records);
  EXPECT_EQ(section.facts->at("interval"), "mixed");
  EXPECT_EQ(cell(section, 1, "interval").text, "paired");
  EXPECT_EQ(cell(section, 2, "interval").text, "welch");
}

TEST(Table, AWholeNumberThatWasNotMeasuredFinerStaysWhole) {
  EXPECT_EQ(cell(report_section({sample_record({.fit_seconds = 574})}), 0, "fit_seconds").text,
            "574");
  EXPECT_EQ(cell(report_section({sample_record({.fit_seconds = 5.5})}), 0, "fit_seconds").text,
            "5.500");
}

TEST(Table, AMarginNeverReadsAsZero) {
  auto records = drifting_study();
  for (Json& json : records) {
    const int round = json["round"].get<int>();
    json["timing"]["fit_seconds"] = json["layout"]["gpus"] == 1 ? 20 : 10 + 1e-5 * round;
  }
  EXPECT_EQ(cell(report_section(records), 1, "speed_up").text, "2.00 ±0.000005");
}

TEST(Table, TextIsAligned) {
  const Section section = report_section(drifting_study());
  const std::string text = to_text(report_document({section}));
  const auto lines = split(text, '\n');
  const auto width = [](const std::string& line) {
    return std::count_if(line.begin(), line.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  };
  ASSERT_GT(lines.size(), 10U);
  EXPECT_EQ(lines[7].find_first_not_of('-'), std::string::npos);
  for (const std::size_t i : {6, 8, 9}) EXPECT_EQ(width(lines[i]), width(lines[7])) << lines[i];
  for (std::size_t i = 10; i < lines.size(); ++i) EXPECT_LE(width(lines[i]), 140) << lines[i];
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  expect_parts(to_text(report_document({section}), {.colours = true}), {"\x1b[1m"});
}

TEST(Table, RecordsCannotSteerTheTerminal) {
  auto records = drifting_study();
  for (Json& json : records) json["parameters"]["backend"] = "mpi\x1b[2J\n|<b>";
  const Section section = report_section(records);
  EXPECT_EQ(to_text(report_document({section})).find('\x1b'), std::string::npos);
  const std::string markdown = to_markdown(report_document({section}));
  expect_parts(markdown, {"\\|\\<b\\>"});
  expect_no_parts(markdown, {"\x1b"});
  expect_no_parts(to_csv(report_document({section})), {"\x1b"});
}

// To a spreadsheet, a cell that begins like one is a formula.
TEST(Table, TextsOfCsvAreNoFormulas) {
  for (const char* text : {"=cmd|' /C calc'!A0", "+1+1", "-x", "@SUM(A1)", " =1"}) {
    EXPECT_EQ(csv_text(text), std::string("'") + text);
  }
  for (const char* text : {"-1.5", "+2", "1e-3", "a=b", ""}) EXPECT_EQ(csv_text(text), text);
  EXPECT_EQ(csv_text("=a,\"b\"\r\n"), "\"'=a,\"\"b\"\"  \"");
  auto records = drifting_study();
  for (Json& json : records) json["parameters"]["backend"] = "=1+1";
  expect_parts(to_csv(report_document({report_section(records)})), {",'=1+1,"});
}

TEST(Table, NoNumberIsALineLong) {
  auto records = drifting_study();
  for (Json& json : records) json["timing"]["fit_seconds"] = 1e308;
  for (const std::string& line : split(to_text(report_document({report_section(records)})), '\n')) {
    EXPECT_LT(line.size(), 300U) << line;
  }
}

TEST(Table, JsonAndCsvHaveEveryKey) {
  const Section section = report_section(drifting_study());
  const Json json = Json::parse(to_json_text(report_document({section})));
  EXPECT_EQ(json["schema"], 1);
  const Json& row = json["tables"][0]["rows"][1];
  EXPECT_EQ(row["gpus"], 2);
  EXPECT_TRUE(row["gpus"].is_number_integer());
  EXPECT_NEAR(row["speed_up"].get<double>(), 1.8, 1e-3);
  EXPECT_LT(row["speed_up_low"].get<double>(), row["speed_up"].get<double>());
  EXPECT_TRUE(row["gpu_utilization"].is_null());
  EXPECT_NEAR(row["efficiency"].get<double>(), 0.9, 1e-3);
  EXPECT_EQ(json["tables"][0]["scaling"], "fixed-epochs");

  const auto csv = parse_csv(to_csv(report_document({section})), "csv");
  ASSERT_EQ(csv.size(), 3U);
  std::set<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.insert(key);
  EXPECT_EQ(std::set<std::string>(csv[0].cells.begin(), csv[0].cells.end()), keys);
  for (const CsvRow& line : csv) EXPECT_EQ(line.cells.size(), keys.size());
}

// What is asked first stands first, and where a row ran stands last.
TEST(Render, CsvHasEachIntervalBesideItsColumn) {
  const std::string text = to_csv(report_document({report_section(drifting_study())}));
  EXPECT_EQ(text.substr(0, text.find(",command,")),
            "point,fit_seconds,fit_seconds_low,fit_seconds_high,"
            "speed_up,speed_up_low,speed_up_high,efficiency,efficiency_low,efficiency_high,"
            "exposed_communication,verdict,label,quality,"
            "samples_per_second,samples_per_second_low,samples_per_second_high,"
            "karp_flatt,karp_flatt_low,karp_flatt_high,input_stall,first_epoch_seconds,first_epoch_"
            "seconds_low,first_epoch_seconds_high,"
            "step_seconds,samples_per_second_per_replica,samples_per_second_per_replica_low,"
            "samples_per_second_per_replica_high,gpu_utilization,gpu_utilization_low,"
            "gpu_utilization_high,test_accuracy,test_top5,epochs_to_goal,busy_runs,runs,gpus,"
            "cpus_per_replica,cpus_per_task,ntasks,nodes,backend,system");
}

TEST(Table, EveryMeanOfSeveralRunsHasItsInterval) {
  auto records = drifting_study();
  for (Json& json : records) json["utilization"] = 0.7 + 0.1 * json["round"].get<int>();
  const Section section = report_section(records);
  for (const char* key :
       {"fit_seconds", "first_epoch_seconds", "samples_per_second",
        "samples_per_second_per_replica", "speed_up", "efficiency", "gpu_utilization"}) {
    const Cell mean = cell(section, 1, key);
    ASSERT_TRUE(mean.interval) << key;
    EXPECT_LT(mean.interval->low, *mean.value) << key;
    EXPECT_GT(mean.interval->high, *mean.value) << key;
  }
  EXPECT_NEAR(*cell(section, 1, "efficiency").value, *cell(section, 1, "speed_up").value / 2,
              1e-12);
  EXPECT_DOUBLE_EQ(*cell(section, 1, "samples_per_second_per_replica").value,
                   *cell(section, 1, "samples_per_second").value / 2);
  EXPECT_DOUBLE_EQ(*cell(section, 1, "gpu_utilization").value, 0.9);
  EXPECT_EQ(cell(section, 1, "gpu_utilization").interval->high, 1);  // a share ends there
}

TEST(Table, GapsStandAmongTheRows) {
  auto records = drifting_study();
  Json failed = sample_record({.gpus = 4});
  failed["status"] = "failed";
  failed["reason"] = "out of memory";
  records.push_back(failed);
  ExpectedRuns wanted{"quick", "mnist-cnn", 3, {}};
  for (const int gpus : {1, 2, 3, 4}) wanted.points.push_back(planned_point(gpus));
  const Section section = report_section(records, Base::matched, {wanted});
  ASSERT_EQ(section.table.rows.size(), 4U);
  EXPECT_EQ(cell(section, 2, "gpus").text, "3");
  EXPECT_EQ(cell(section, 2, "ntasks").text, "3");
  EXPECT_EQ(cell(section, 2, "runs").text, "0");
  EXPECT_EQ(cell(section, 2, "label").text, "not run");
  EXPECT_EQ(cell(section, 3, "label").text, "failed");
  EXPECT_FALSE(cell(section, 3, "fit_seconds").value);
  EXPECT_TRUE(is_shown(section, "verdict"));
  expect_parts(to_csv(report_document({section})), {",not run,not run,"});
}

ExpectedRuns make_plan(const std::vector<std::vector<std::pair<std::string, Value>>>& points) {
  ExpectedRuns wanted{"quick", "mnist-cnn", 3, {}};
  for (const auto& values : points) {
    Point& point = wanted.points.emplace_back();
    for (const auto& [name, value] : values) point.set(name, value);
  }
  return wanted;
}

// Backend and CPUs that a spec leaves to the program are whatever its runs had.
TEST(Table, WhatASpecLeavesOpenIsNoGap) {
  const std::vector<Json> records = {sample_record({.cpus_per_replica = 2})};
  const auto plan = make_plan({{{"gpus", std::int64_t{1}}}});
  EXPECT_EQ(report_section(records, Base::matched, {plan}).table.rows.size(), 1U);
}

TEST(Table, AFailedPointStandsOnceWithWhatItWas) {
  Json failed = sample_record();
  failed["status"] = "failed";
  failed["parameters"] = {{"workload", "mnist-cnn"}, {"gpus", 1}, {"learning_rate", 1e30}};
  const auto plan = make_plan({{{"gpus", std::int64_t{1}}, {"learning_rate", 0.001}},
                               {{"gpus", std::int64_t{1}}, {"learning_rate", 1e30}}});
  const Section section = report_section({sample_record(), failed}, Base::matched, {plan});
  ASSERT_EQ(section.table.rows.size(), 2U);
  EXPECT_EQ(cell(section, 0, "learning_rate").text, "1e+30");
  EXPECT_EQ(cell(section, 0, "label").text, "failed");
  EXPECT_EQ(cell(section, 1, "learning_rate").text, "0.001");
  EXPECT_TRUE(is_shown(section, "learning_rate"));
}

TEST(Table, NotToHaveAParameterReportsRowsApart) {
  Json clipped = sample_record();
  clipped["parameters"]["clip_norm"] = 1.0;
  const Section section = report_section({sample_record(), clipped});
  ASSERT_EQ(section.table.rows.size(), 2U);
  EXPECT_TRUE(is_shown(section, "clip_norm"));
  EXPECT_NE(cell(section, 0, "clip_norm").text, cell(section, 1, "clip_norm").text);
}

// The spec was edited: the runs of before are no longer what its point says.
TEST(Table, RunsOfEarlierParametersAreLeftOutAndCounted) {
  Json before = sample_record(), now = sample_record();
  before["point"] = now["point"] = "gpus=1";
  before["parameters"]["epochs"] = 1;
  const auto plan = make_plan({{{"gpus", std::int64_t{1}}, {"epochs", std::int64_t{2}}}});
  const Section section = report_section({before, now}, Base::matched, {plan});
  EXPECT_EQ(section.table.rows.size(), 1U);
  EXPECT_TRUE(says(section, "1 run of points whose parameters have changed in the study's plan"));
  EXPECT_EQ(report_section({before, now}).table.rows.size(), 2U);
}

// Nobody planned it, but other series have that size, and this one has a smaller and a larger.
TEST(Table, AHoleInTheMatrixIsAGap) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4}) {
    records.push_back(sample_record({.gpus = gpus, .fit_seconds = 20.0 / gpus}));
    if (gpus == 2) continue;
    records.push_back(
        sample_record({.gpus = gpus, .fit_seconds = 20.0 / gpus, .backend = "mirrored"}));
  }
  records.push_back(
      sample_record({.gpus = 1, .cpus_per_replica = 2, .fit_seconds = 12, .backend = "mirrored"}));
  const Section section = report_section(records);
  ASSERT_EQ(section.table.rows.size(), 7U);
  EXPECT_EQ(cell(section, 3, "label").text, "not run");
  EXPECT_EQ(cell(section, 3, "backend").text, "mirrored");
  EXPECT_EQ(cell(section, 3, "gpus").text, "2");
  EXPECT_EQ(cell(section, 3, "cpus_per_task").text, "2");
  expect_parts(join(section.caveats, "\n"), {"2, 4 replicas (mirrored, CPUs per replica 2)"});
}

// A study that went on until its intervals were narrow: Student's would be too narrow for it.
TEST(Table, RowsWhoseNumberOfRunsDependsOnThemHaveWiderIntervals) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    for (const int gpus : {1, 2}) {
      const double noise = 1 + 0.004 * ((round * 7 + gpus) % 5);
      records.push_back(
          sample_record({.gpus = gpus, .repeat = round, .fit_seconds = 20.0 / gpus * noise}));
    }
  }
  const Section fixed = report_section(records);
  for (Json& record : records) record["flags"]["sequential"] = true;
  const Section sequential = report_section(records);
  for (const char* key : {"fit_seconds", "samples_per_second", "speed_up"}) {
    const Interval narrow = *cell(fixed, 1, key).interval;
    const Interval wide = *cell(sequential, 1, key).interval;
    EXPECT_EQ(*cell(fixed, 1, key).value, *cell(sequential, 1, key).value);
    const double ratio = std::log(wide.high / wide.low) / std::log(narrow.high / narrow.low);
    EXPECT_NEAR(ratio, 1.95, 0.01) << key;
  }
  const std::string legend = join(sequential.notes, "\n");
  expect_parts(legend, {"sequential: results decided how many runs 2 of 2 rows have"});
  expect_no_parts(legend, {"Student's t on"});
  expect_no_parts(join(fixed.notes, "\n"), {"sequential"});
  // Rows of unlike numbers of runs: the sum of both intervals.
  records.pop_back();
  const Cell speed_up = cell(report_section(records), 1, "speed_up");
  ASSERT_TRUE(speed_up.interval);
  EXPECT_GT(speed_up.interval->high / speed_up.interval->low,
            cell(sequential, 1, "speed_up").interval->high /
                cell(sequential, 1, "speed_up").interval->low);
}

}  // namespace
}  // namespace paceline
