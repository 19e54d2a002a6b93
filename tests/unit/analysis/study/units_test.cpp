// What rates count: samples, or what a program of one's own says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <tuple>

#include "analysis/gate/judge.h"
#include "analysis/gate/render.h"
#include "analysis/history/history.h"
#include "analysis/predict/prediction.h"
#include "analysis/report.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

// A program's rates on 1, 2 and 4 GPUs, in the unit.
std::vector<Json> rated(const std::string& unit, double factor = 1) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4}) {
    for (int repeat = 1; repeat <= 3; ++repeat) {
      Json record = sample_record({.gpus = gpus, .repeat = repeat});
      record["provenance"]["program"] = {{"name", "train"}};
      const double rate = factor * 1000 * gpus * (1 - 0.02 * gpus) * (1 + 0.001 * repeat);
      record["throughput"] = {{"samples_per_second", rate}};
      if (!unit.empty()) record["throughput"]["unit"] = unit;
      record["timing"].erase("fit_seconds");
      record["phases"] = Json::array();
      records.push_back(record);
    }
  }
  return records;
}

TEST(Units, TablesFindingsAndPredictionsNameTheUnit) {
  const StoreContent content = canonical_content(rated("tokens"));
  const Compared compared(make_studies(content).at(0));
  EXPECT_EQ(compared.study.unit.name, "tokens");
  const Section section = compared.section();
  EXPECT_GT(*testing::cell(section, 0, "tokens_per_second").value, 900);
  const std::string all = notes_text(section) + "\n" + findings_text(section);
  expect_parts(all, {"speed-up: ratio of tokens/s"});
  expect_no_parts(all, {"samples/s"});
  const auto predictions = predict(content, {});
  ASSERT_EQ(predictions.size(), 1U);
  EXPECT_EQ(predictions[0].unit.rate(), "tokens/s");
}

TEST(Units, AStudyThatMixesThemHasATableEach) {
  std::vector<Json> records = rated("tokens", 1000);
  for (const Json& record : rated("")) records.push_back(record);
  const std::vector<Study> studies = make_studies(canonical_content(records));
  ASSERT_EQ(studies.size(), 2U);
  EXPECT_NE(studies[0].unit, studies[1].unit);
  for (const Study& study : studies) EXPECT_EQ(study.rows.size(), 3U);
}

// Steps of 2 replicas hold twice as much, where each has its own batch.
TEST(Units, RatesOfStepsAreOfWhatAStepHolds) {
  const auto studies = [](const Json& stated) {
    std::vector<Json> records;
    for (Json record : rated("steps")) {
      for (const char* key : {"batch_per_replica", "global_batch", "epochs", "steps"}) {
        record["parameters"].erase(key);
      }
      record["parameters"].update(stated);
      record["throughput"]["samples_per_second"] = 100 - record["layout"]["gpus"].get<int>();
      records.push_back(record);
    }
    return make_studies(canonical_content(records));
  };
  const auto cell = [&](const Json& stated, const char* column) {
    return *testing::cell(Compared(studies(stated).at(0)).section(), 1, column).value;
  };
  EXPECT_NEAR(cell(Json::object(), "speed_up"), 98. / 99, 1e-9);
  expect_parts(join(studies(Json::object()).at(0).notes, "\n"),
               {"rates are in steps, and speed-ups would be higher", "state batch_per_replica"});
  const Json batches = {{"batch_per_replica", 32}};
  EXPECT_NEAR(cell(batches, "speed_up"), 2 * 98. / 99, 1e-9);
  EXPECT_NEAR(cell(batches, "samples_per_second"), 98 * 64, 1e-9);
  expect_parts(notes_text(Compared(studies(batches).at(0)).section()),
               {"steps/s times the samples of a step"});
  EXPECT_NEAR(cell({{"work", "grows"}}, "steps_per_second"), 98 * 2, 1e-9);
  EXPECT_NEAR(cell({{"global_batch", 64}}, "speed_up"), 98. / 99, 1e-9);
}

// An imported table of as many steps of several batches: what takes as long does more.
TEST(Units, UnequalWorkOfOneSizeIsComparedByRate) {
  std::vector<Json> records;
  for (const int batch : {2, 4, 8}) {
    Json record = sample_record({.gpus = 8, .fit_seconds = 100});
    record["kind"] = "imported";
    record["parameters"]["batch_per_replica"] = batch;
    record["parameters"]["steps"] = 100;
    record["throughput"] = {{"samples_per_second", 8 * batch}};
    for (const char* key : {"phases", "plan", "work"}) record.erase(key);
    records.push_back(record);
  }
  const Section section = report_section(records, {"batch_per_replica", "2"});
  const std::string text = to_text({.sections = {section}}, {.details = true});
  expect_parts(text, {"2.00", "4.00"});
  for (const Statement& finding : section.findings) {
    expect_no_parts(finding.text, {"time x rate"});
  }
}

TEST(Units, GpuHoursAreOfABillionTokens) {
  std::vector<Json> records;
  for (Json record : rated("tokens")) {
    record["layout"]["replicas_are"] = "gpus";
    record["timing"]["fit_seconds"] = 3600;
    record["throughput"]["samples"] = 1e8;
    record["throughput"].erase("samples_per_second");
    records.push_back(record);
  }
  const Section section = report_section(records);
  const double hours = *testing::cell(section, 0, "gpu_hours").value;
  EXPECT_NEAR(*testing::cell(section, 0, "gpu_hours_per_billion_tokens").value, 10 * hours, 1e-6);
}

TEST(Units, ARateThatFollowsFromOthersIsNotCalledReported) {
  const auto notes = [](const std::function<void(Json&)>& change) {
    std::vector<Json> records;
    for (Json record : rated("tokens")) {
      change(record);
      records.push_back(record);
    }
    return notes_text(report_section(records)) + "\n";
  };
  expect_parts(notes([](Json&) {}), {"tokens/s: as the program reports them\n"});
  expect_parts(
      notes([](Json& record) { record["provenance"]["rate_is"] = "tokens of a step over it"; }),
      {"tokens/s: tokens of a step over it\n"});
  expect_parts(notes([](Json& record) {
                 record["timing"]["fit_seconds"] = 10;
                 record["throughput"] = {{"samples", 1000}, {"unit", "tokens"}};
               }),
               {"tokens/s: tokens over fit seconds\n"});
}

TEST(Units, NotesOfOurOwnRunsNameTheUnit) {
  Json record = sample_record();
  record["throughput"]["unit"] = "tokens";
  const std::string notes = notes_text(report_section({record}));
  expect_parts(notes, {"tokens/s: of all replicas"});
  expect_no_parts(notes, {"samples/s"});
}

TEST(Units, AreWordsThatNamesCanHold) {
  const auto is_read = [](const std::string& unit) {
    Json record = sample_record();
    record["throughput"]["unit"] = unit;
    try {
      return Record(record, "r.json")->throughput->unit == unit;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("plural"), std::string::npos) << error.what();
      return false;
    }
  };
  EXPECT_TRUE(is_read("tokens"));
  for (const char* unit : {"s", "img/s", "MB", "Tokens", "token"}) EXPECT_FALSE(is_read(unit));
}

// GROMACS prints both: the same result, of which more and of which less is better.
std::vector<Json> of_own_unit(const std::string& unit, const std::string& better) {
  std::vector<Json> records;
  for (Json record : rated(unit, better == "more" ? 1e-1 : 1)) {
    double& rate = record["throughput"]["samples_per_second"].get_ref<double&>();
    if (better == "less") rate = 24 / (rate / 10);
    record["throughput"]["better"] = better;
    record["timing"]["fit_seconds"] = 86400;  // says nothing: they are compared by their result
    records.push_back(record);
  }
  return records;
}

TEST(Units, AResultOfOnesOwnHasItsUnitAndItsDirection) {
  const Compared more(of_own_unit("ns/day", "more")), less(of_own_unit("hour/ns", "less"));
  const Section of_more = more.section(), of_less = less.section();
  const std::string texts = notes_text(of_more) + findings_text(of_more) + notes_text(of_less);
  expect_parts(texts, {"speed-up: ratio of ns/day", "speed-up: ratio of hour/ns"});
  expect_no_parts(texts + findings_text(of_less), {"samples"});
  for (std::size_t row = 0; row < 3; ++row) {
    const double rate = *testing::cell(of_more, row, "ns_per_day").value;
    EXPECT_NEAR(*testing::cell(of_less, row, "hour_per_ns").value, 24 / rate, 1e-9);
    EXPECT_NEAR(*testing::cell(of_more, row, "speed_up").value,
                *testing::cell(of_less, row, "speed_up").value, 1e-9);
  }
  EXPECT_NEAR(*testing::cell(of_more, 1, "efficiency").value, 0.96 / 0.98, 1e-9);
  expect_parts(best_text(less.study, find_best(less.study, 0)), {"hour/ns"});
  PredictOptions options;
  options.gpus = {8};
  const auto predictions = predict(canonical_content(of_own_unit("hour/ns", "less")), options);
  const Document page = prediction_document(predictions, {});
  const Table& table = page.sections.at(0).table;
  EXPECT_LT(*table.rows.back().at(1).value, *table.rows.front().at(1).value);
}

TEST(Units, AHistoryShowsAResultInItsUnit) {
  std::vector<Json> records;
  for (int day = 1; day <= 3; ++day) {
    for (Json record : of_own_unit("hour/ns", "less")) {
      record["session"] = "s" + std::to_string(day);
      record["provenance"]["started_at"] = fmt::format("2026-11-0{}T00:00:00Z", day);
      records.push_back(record);
    }
  }
  const HistoryStudy study = make_history(canonical_content(records), {}).at(0);
  const HistorySeries& series = study.series.at(0);
  EXPECT_EQ(series.metric, HistoryMetric::result);
  expect_parts(history_value_text(series.sessions.at(0).value, series), {"0.24", " hour/ns"});
}

TEST(Units, AGateShowsAResultInItsUnit) {
  for (const auto& [unit, better, texts] :
       {std::tuple("ns/day", "more", std::vector<std::string>{"98.", " ns/day", "-4.8 %"}),
        {"hour/ns", "less", {"0.24", " hour/ns", "+5.0 %"}}}) {
    std::vector<Json> slower = of_own_unit(unit, better);
    for (Json& record : slower) {
      double& rate = record["throughput"]["samples_per_second"].get_ref<double&>();
      rate *= std::string(better) == "less" ? 1.05 : 1 / 1.05;
    }
    const Side before = load_side("old", canonical_content(of_own_unit(unit, better))),
               now = load_side("new", canonical_content(slower));
    const Judgement judgement = judge(before, now, {});
    EXPECT_EQ(judgement.verdict(), Verdict::regression) << unit;
    expect_parts(full_text(gate_document(judgement, {"old", "new", "", ""})), texts);
    const double first = Json::parse(github_action_json(before))[0]["value"];
    EXPECT_LT(first, Json::parse(github_action_json(now))[0].at("value")) << "smaller is better";
    expect_parts(open_metrics(before), {better == std::string("less") ? "paceline_hour_per_ns{"
                                                                      : "paceline_ns_per_day{"});
  }
}

TEST(Units, ExportsNameWhatASecondIsOf) {
  Subject subject;
  subject.name = "train";
  subject.is_rated = true;
  subject.unit = {"tokens"};
  subject.samples[Quantity::time] = {{0.001, "s", 1, false}};
  Side tokens;
  tokens.subjects.push_back(subject);
  EXPECT_NE(open_metrics(tokens).find("paceline_seconds_per_token"), std::string::npos);
  EXPECT_EQ(Json::parse(github_action_json(tokens))[0]["unit"], "s/token");
  EXPECT_TRUE(is_export(github_action_json(tokens)));
}

}  // namespace
}  // namespace paceline
