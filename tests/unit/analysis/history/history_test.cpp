// The history of a study: series by session, shifts, what they touch, and what changed with them.
#include "analysis/history/history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/plots/script.h"
#include "engine/core/error.h"
#include "engine/core/random.h"
#include "results/shipped.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
inline namespace testing {
namespace {

struct Change {
  int night = 20;
  double factor = 1.1;
  int from_gpus = 1;                     // points of so many replicas and more
  std::string library = "oneDNN 2.6.3";  // from that night on
  std::string host = "n1";
};

// 40 nights of one, two and four replicas, three runs each, noise 1 %.
std::vector<Json> nightly(const Change& change, int nights = 40) {
  RandomSequence random(3, Stream::synthetic, 1);
  std::vector<Json> records;
  for (int night = 0; night < nights; ++night) {
    const std::string date = date_text(20454 + night);
    const bool is_after = night >= change.night;
    for (const int gpus : {1, 2, 4}) {
      for (int repeat = 1; repeat <= 3; ++repeat) {
        double seconds = 20 / (1 + 0.9 * (gpus - 1)) * std::exp(0.01 * random.normal());
        if (is_after && gpus >= change.from_gpus) seconds *= change.factor;
        Json record = sample_record(
            {.gpus = gpus, .repeat = repeat, .fit_seconds = seconds, .session = date + "T0300"});
        record["provenance"]["started_at"] = date + "T03:00:00Z";
        record["provenance"]["libraries"] =
            "Open MPI 4.1.4, " + (is_after ? change.library : "oneDNN 2.6.3");
        record["provenance"]["hosts"] = Json::array({is_after ? change.host : "n1", "n0"});
        records.push_back(std::move(record));
      }
    }
  }
  return records;
}

History load_history(const std::vector<Json>& records, const HistoryOptions& options = {}) {
  return find_history(make_history(canonical_content(records), options));
}

HistoryOptions only(HistoryMetric metric) {
  return {{metric}, {}, {}};
}

History history_of_table(const char* name, const HistoryOptions& options = {}) {
  StoreContent content =
      load_store(std::string(PACELINE_SOURCE_DIR) + "/results/reference/" + name);
  return find_history(make_history(std::move(content), options));
}

std::string history_text(const History& history) {
  return to_text(history_document(history), {.width = 80});
}

TEST(History, FindsTheNightAndWhatChangedWithIt) {
  const History history =
      load_history(nightly({.library = "oneDNN 3.5.0"}), only(HistoryMetric::time));
  ASSERT_EQ(history.studies.size(), 1U);
  const StudyHistory& study = history.studies[0];
  ASSERT_EQ(study.series.size(), 3U);
  EXPECT_EQ(history.tested, 3U);
  ASSERT_EQ(study.events.size(), 1U);
  const HistoryEvent& event = study.events[0];
  EXPECT_EQ(event.touches, "all 3 points");
  EXPECT_EQ(event.members.size(), 3U);
  EXPECT_EQ(date_text(event.last_day), "2026-01-21");
  ASSERT_FALSE(event.changes.facts.empty());
  EXPECT_EQ(event.changes.facts[0].name, "library");
  EXPECT_EQ(event.changes.facts[0].before, "oneDNN 2.6.3");  // not what both have
  EXPECT_EQ(event.changes.facts[0].after, "oneDNN 3.5.0");
  EXPECT_NEAR(event.changes.facts[0].separation, 1, 1e-9);
  EXPECT_EQ(event.changes.facts[0].elsewhere, 0U);
  expect_parts(history_text(history), {"History of quick: mnist-cnn", "time +9.9 %",
                                       "\n    (worse), all 3 points", "software changed with it"});
}

TEST(History, ReportsWhichPointsAShiftTouches) {
  const History history = load_history(nightly({.from_gpus = 4}), only(HistoryMetric::time));
  ASSERT_EQ(history.studies[0].events.size(), 1U);
  EXPECT_EQ(history.studies[0].events[0].touches, "1 of 3 points, all those of 4 replicas or more");
  expect_parts(history_text(history), {"no recorded software changed with it"});
}

TEST(History, NamesAHostThatSeparatesTheLevels) {
  const History history = load_history(nightly({.host = "n17"}), only(HistoryMetric::time));
  const Changes& changes = history.studies[0].events.at(0).changes;
  ASSERT_EQ(changes.facts.size(), 2U);
  EXPECT_EQ(changes.facts[0].name, "host n1");
  EXPECT_EQ(changes.facts[1].name, "host n17");
  EXPECT_EQ(changes.facts[1].after, "used");
  EXPECT_TRUE(changes.knows_software);
}

TEST(History, WhatChangesEveryNightSeparatesNothing) {
  std::vector<Json> records = nightly({});
  for (Json& record : records) {
    record["provenance"]["commit"] = record["session"].get<std::string>();
  }
  const History history = load_history(records, only(HistoryMetric::time));
  for (const ChangedFact& fact : history.studies[0].events.at(0).changes.facts) {
    EXPECT_TRUE(fact.name == "build" && fact.elsewhere > 30) << fact.name;
  }
}

TEST(History, WithoutProvenanceNothingIsKnownOfIt) {
  std::vector<Json> records = nightly({});
  for (Json& record : records) {
    record["provenance"] = {{"started_at", record["provenance"]["started_at"]}};
  }
  const History history = load_history(records, only(HistoryMetric::time));
  expect_parts(history_text(history), {"the records state nothing of software and nodes"});
}

// One replica gets faster by 5 % and four do not: the times of four show nothing.
TEST(History, ASerialFractionThatGrowsIsFound) {
  std::vector<Json> records = nightly({.night = 99});
  for (Json& record : records) {
    if (record["parameters"]["gpus"] != 1 || record["session"] < "2026-01-21") continue;
    for (const char* key : {"fit_seconds"}) {
      record["timing"][key] = record["timing"][key].get<double>() * 0.95;
    }
  }
  const History history = load_history(records);
  bool fraction = false;
  for (const HistoryEvent& event : history.studies[0].events) {
    EXPECT_EQ(date_text(event.last_day), "2026-01-21");
    if (event.metric == HistoryMetric::time) {
      EXPECT_EQ(event.touches, "1 of 3 points, all those of one replica");
    }
    fraction = fraction || event.metric == HistoryMetric::serial_fraction;
  }
  EXPECT_TRUE(fraction);
}

TEST(History, ASeriesWithoutAShiftHasOneLevel) {
  const History history = load_history(nightly({.factor = 1}));
  for (const SeriesHistory& series : history.studies[0].series) {
    EXPECT_EQ(series.found.levels.size(), 1U) << series.series->point;
  }
  expect_parts(history_text(history), {"no level shift"});
  ASSERT_EQ(history_plots(history.studies[0], 1).size(), 1U);
}

TEST(History, WithoutAShiftReportsWhatWouldHaveBeenFound) {
  expect_parts(history_text(load_history(nightly({.factor = 1}), only(HistoryMetric::time))),
               {"time: no level shift in 3 series; 40 sessions would have shown one of"});
  const History few = load_history(nightly({.factor = 1}, 19), only(HistoryMetric::time));
  expect_no_parts(history_text(few), {"too few sessions"});
  const Json series = Json::parse(to_json_text(history_document(few)))["history"][0]["series"][0];
  EXPECT_GT(series["detectable"], 0.01);
  EXPECT_LT(series.at("detectable"), 0.05);
}

// Of a shift that only a multiple would have shown, the multiple is said, not thousands of percent.
TEST(History, FewNoisySessionsShowOnlyMultiples) {
  std::vector<Json> records = nightly({.factor = 1}, 8);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const double seconds = records[i]["timing"]["fit_seconds"].get<double>();
    records[i]["timing"]["fit_seconds"] = seconds * (i / 9 % 2 == 0 ? 1 : 3);
  }
  expect_parts(history_text(load_history(records, only(HistoryMetric::time))),
               {"; 8 sessions would have shown only one of a\n    factor of "});
}

TEST(History, SessionsInARowThatAreOutlyingAreReportedTogether) {
  std::vector<Json> records = nightly({.night = 99});
  for (Json& record : records) {
    if (record["session"] < "2026-01-21" || record["session"] >= "2026-01-24") continue;
    record["timing"]["fit_seconds"] = record["timing"]["fit_seconds"].get<double>() * 1.2;
  }
  const History history = load_history(records, only(HistoryMetric::time));
  EXPECT_TRUE(history.studies[0].events.empty());
  expect_parts(history_text(history), {"3 sessions from 2026-01-21 to 2026-01-23: time +"});
}

TEST(History, KnowsWhetherAShiftIsForTheWorse) {
  EXPECT_TRUE(load_history(nightly({}), only(HistoryMetric::time)).has_worse());
  EXPECT_FALSE(load_history(nightly({.factor = 0.9}), only(HistoryMetric::time)).has_worse());
  EXPECT_FALSE(load_history(nightly({.factor = 1}), only(HistoryMetric::time)).has_worse());
}

TEST(History, DisturbedAndControlRunsAreInNoSession) {
  std::vector<Json> records = nightly({.factor = 1});
  for (std::size_t i = 0; i < records.size(); i += 9) {
    records[i]["flags"]["throttled"] = true;
    records[i]["timing"]["fit_seconds"] = 1000.0;
  }
  const History history = load_history(records, only(HistoryMetric::time));
  EXPECT_EQ(history.studies[0].series[0].series->sessions[0].runs, 2U);
  EXPECT_TRUE(history.studies[0].events.empty());
}

TEST(History, UnlikeMachinesAreSeriesOfTheirOwn) {
  std::vector<Json> records = nightly({.factor = 1.3});
  for (Json& record : records) {
    const bool is_after = record["session"] >= "2026-01-21";
    record["provenance"]["cpu_model"] = is_after ? "A slow CPU" : "A fast CPU";
  }
  const History history = load_history(records, only(HistoryMetric::time));
  EXPECT_EQ(history.studies[0].series.size(), 6U);
  EXPECT_TRUE(history.studies[0].events.empty());
}

TEST(History, OfFewSessionsIsMarked) {
  const History history = load_history(nightly({.night = 2}, 3), only(HistoryMetric::time));
  EXPECT_EQ(history.tested, 0U);
  EXPECT_TRUE(history.studies[0].events.empty());
  expect_parts(history_text(history), {"too few sessions to distinguish"});
}

TEST(History, PublishedRowsOfOnePointAreOneSeries) {
  const History history = history_of_table("csc-resnet50", only(HistoryMetric::throughput));
  ASSERT_EQ(history.studies.size(), 1U);
  EXPECT_EQ(history.studies[0].series.size(), 51U);  // one point has a single date
  const SeriesHistory* mahti = nullptr;
  for (const SeriesHistory& each : history.studies[0].series) {
    if (each.series->point == "DDP, synthetic, mahti, A100 40GB 4/node, 8 GPUs") mahti = &each;
  }
  ASSERT_NE(mahti, nullptr);
  ASSERT_EQ(mahti->series->sessions.size(), 7U);
  EXPECT_EQ(mahti->series->sessions[0].value, 5502.49);
  EXPECT_EQ(mahti->series->sessions[0].origin.front().second, "PyTorch 1.11.0+cu115");
}

// Its times on one GCD rose while those on 16 fell: 89.5 % to 82.2 % between two versions.
TEST(History, FindsThePublishedLossOfEfficiency) {
  const History history = history_of_table("csc-resnet50");
  const HistoryEvent* loss = nullptr;
  for (const HistoryEvent& event : history.studies[0].events) {
    if (event.metric != HistoryMetric::efficiency) continue;
    for (const auto& member : event.members) {
      if (history.studies[0].series[member.series].series->point ==
          "DDP, synthetic, fp16, lumi, MI250X GCD 8/node, 16 GPUs") {
        loss = &event;
      }
    }
  }
  ASSERT_NE(loss, nullptr);
  EXPECT_EQ(date_text(loss->first_day), "2023-09-28");
  EXPECT_EQ(date_text(loss->last_day), "2023-11-17");
  EXPECT_EQ(loss->changes.facts.at(0).name, "library");
  EXPECT_EQ(loss->changes.facts.at(0).before, "PyTorch 2.0.1+rocm5.4.2");
}

// A last session that differs may be one odd session.
TEST(History, OneSessionIsNoLevel) {
  const History history = history_of_table("csc-gpt-neo");
  expect_parts(history_text(history), {"-54.0 %;\n        run_clm"});
  for (const HistoryEvent& event : history.studies[0].events) {
    EXPECT_NE(date_text(event.last_day), "2026-01-09");
  }
}

TEST(History, JsonHasEverySession) {
  const History history = load_history(nightly({}), only(HistoryMetric::time));
  const Json json = Json::parse(to_json_text(history_document(history)));
  const Json& study = json["history"][0];
  EXPECT_EQ(json["series_tested"], 3);
  EXPECT_EQ(study["series"][0]["sessions"].size(), 40U);
  EXPECT_EQ(study["series"][0]["sessions"][0]["date"], "2026-01-01");
  EXPECT_EQ(study["shifts"][0]["metric"], "time");
  EXPECT_TRUE(study["shifts"][0]["worse"]);
  EXPECT_EQ(study["shifts"][0]["software"], "no recorded change");
  EXPECT_NEAR(study["shifts"][0]["points"][0]["change"], 0.1, 0.02);
  EXPECT_EQ(study["series"][0]["levels"].size(), 2U);
}

TEST(History, APictureHasLevelsAndLabelledShifts) {
  const History history = load_history(nightly({}), only(HistoryMetric::time));
  const std::vector<Plot> plots = history_plots(history.studies[0], 3);
  ASSERT_FALSE(plots.empty());
  EXPECT_EQ(plots[0].name, "history-3");
  const auto& timeline = std::get<Timeline>(plots[0].body);
  EXPECT_EQ(timeline.points.size(), 40U);
  EXPECT_EQ(timeline.levels.size(), 2U);
  ASSERT_EQ(timeline.shifts.size(), 1U);
  EXPECT_TRUE(timeline.shifts[0].label.starts_with("2026-01-21 +9.9 %"));
  expect_parts(plot_script(plots[0], "svg"), {"set arrow", "level, 95 % interval"});
}

TEST(History, DatesAreReadInTheFormsOfSessions) {
  EXPECT_EQ(parse_day("1970-01-02"), 1);
  EXPECT_EQ(parse_day("2026-01-01"), 20454);
  EXPECT_EQ(parse_day("2026-01"), 20454);
  EXPECT_EQ(parse_day("20260101T120000-3f9a"), 20454.5);
  EXPECT_EQ(parse_day("2026-01-01T12:00:00Z"), 20454.5);
  for (const char* no_date : {"", "s1", "2026-13-01", "2026-02-30", "20261", "2026-01-1x"}) {
    EXPECT_FALSE(parse_day(no_date)) << no_date;
  }
}

TEST(History, RefusesWhatHasNoSeries) {
  EXPECT_THROW(load_history(nightly({}, 1)), Error);
  HistoryOptions options;
  options.since = 30000;
  EXPECT_THROW(load_history(nightly({}), options), Error);
  EXPECT_THROW(parse_history_metric("tmie"), Error);
}

}  // namespace
}  // namespace testing
}  // namespace paceline
