#include "analysis/gate/report_sides.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/report.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Studies in folders, each of one session or several.
class Sides : public ::testing::Test {
 protected:
  // Runs take `slower` times what the sample's take; those of two replicas 2 % more in each later
  // session.
  fs::path study(const std::string& name, const std::vector<std::string>& sessions, double slower,
                 int cpus = 64) const {
    const Store store(folder_ / name);
    int number = 0;
    for (const std::string& session : sessions) {
      for (Json json : drifting_study()) {
        const double own = json["layout"]["gpus"] == 2 ? 1 + 0.02 * number : 1;
        json["timing"]["fit_seconds"] = json["timing"]["fit_seconds"].get<double>() * slower * own;
        json["session"] = session;
        json["repeat"] = json["repeat"].get<int>() + 3 * number;
        json["provenance"]["machine"] = {{"cpus", cpus}, {"memory_bytes", 256e9}};
        json["provenance"]["started_at"] = session + std::to_string(++started_);
        store.write(json["point"].get<std::string>(), json["repeat"].get<int>(), json, "");
      }
      ++number;
    }
    return folder_ / name;
  }

  static std::string text(const std::vector<fs::path>& studies, const ReportOptions& options) {
    std::ostringstream stream;
    write_report(studies, options, stream);
    return stream.str();
  }

  static Json tables(const std::vector<fs::path>& studies, bool pool = false) {
    ReportOptions options;
    options.format = Format::json;
    options.pooling = pool ? Pooling::always : Pooling::by_sessions;
    return Json::parse(text(studies, options))["tables"];
  }

  static bool says(const Json& table, const std::string& what) {
    for (const char* list : {"notes", "warnings", "findings"}) {
      for (const Json& line : table[list]) {
        if (line.get<std::string>().find(what) != std::string::npos) return true;
      }
    }
    return false;
  }

  Scratch folder_;
  mutable int started_ = 0;
};

TEST_F(Sides, TwoStudiesAreComparedAndNotPooled) {
  const std::vector<fs::path> studies = {study("monday", {"m"}, 1), study("tuesday", {"t"}, 1.1)};
  const Json all = tables(studies);
  ASSERT_EQ(all.size(), 3U);
  expect_parts(all[0]["title"].get<std::string>(), {"tuesday (second) against "});
  ASSERT_EQ(all[0]["rows"].size(), 2U);
  for (const Json& row : all[0]["rows"]) {
    EXPECT_NEAR(row["ratio"].get<double>(), 1.1, 1e-9);
    EXPECT_LT(row["ratio_low"].get<double>(), 1);
    EXPECT_EQ(row["interval_from"], "runs");
    EXPECT_EQ(row["first_runs"], 3);
    EXPECT_EQ(row["second_sessions"], 1);
  }
  EXPECT_TRUE(says(all[0], "it does not cover how sessions differ")) << all[0];
  EXPECT_TRUE(says(all[0], "of 2 points, none differs by more than runs of one session do"));
  for (const std::size_t side : {1, 2}) {
    EXPECT_EQ(all[side]["rows"][0]["runs"], 3) << "six would be pooled";
    EXPECT_NEAR(all[side]["rows"][1]["speed_up"].get<double>(), 1.8, 0.01);
  }
  ReportOptions options;
  options.format = Format::markdown;
  const std::string printed = text(studies, options);
  EXPECT_LT(printed.find("monday: "), printed.find("Hoefler")) << "no rules of a comparison";
}

TEST_F(Sides, SessionsAreTheUnitWhereThereAreThree) {
  const Json all = tables({study("before", {"a", "b", "c"}, 1), study("after", {"d"}, 1.5)});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0]["rows"][0]["interval_from"], "sessions");
  EXPECT_EQ(all[0]["rows"][0]["first_sessions"], 3);
  EXPECT_TRUE(says(all[0], "it covers how sessions differ"));
  EXPECT_TRUE(says(all[0],
                   "slower beyond the noise in 2, faster in 0 (p < 0.05, Holm-adjusted over "
                   "all points)"))
      << all[0];
}

// Of many points some lie beyond their own interval by chance.
TEST_F(Sides, PointsThatDifferAreCountedByTheAdjustedP) {
  const auto written = [&](const std::string& name, bool second) {
    const Store store(folder_ / name);
    for (int cpus = 1; cpus <= 8; ++cpus) {
      for (int repeat = 1; repeat <= 5; ++repeat) {
        const double noise = 1 + 0.01 * ((repeat * 7 + (second ? cpus : 0)) % 5);
        const double factor = second && cpus == 1 ? 1.023 : 1;
        Json json = sample_record({.gpus = 1,
                                   .cpus_per_replica = cpus,
                                   .repeat = repeat,
                                   .fit_seconds = 10 * noise * factor,
                                   .session = name});
        store.write(json["point"].get<std::string>(), repeat, json, "");
      }
    }
    return folder_ / name;
  };
  const Json table = tables({written("monday", false), written("tuesday", true)})[0];
  ASSERT_EQ(table["rows"].size(), 8U);
  EXPECT_GT(table["rows"][0]["ratio_low"].get<double>(), 1);
  EXPECT_TRUE(says(table, "of 8 points, none differs by more than runs of one session do"))
      << table;
}

// A side of which no run counts is no reason to average it with the other.
TEST_F(Sides, APointWithoutRunsThatCountIsAGap) {
  for (const bool first : {true, false}) {
    const auto written = [&](const std::string& name, bool reached) {
      const Store store(folder_ / (name + (first ? "1" : "2")));
      for (Json json : drifting_study()) {
        json["session"] = name;
        json["quality"]["until"] = {{"goal", "test_accuracy=0.98"}, {"reached", reached}};
        store.write(json["point"].get<std::string>(), json["repeat"].get<int>(), json, "");
      }
      return store.folder();
    };
    const Json all = tables({written("monday", !first), written("tuesday", first)});
    ASSERT_EQ(all.size(), 3U) << "a comparison, and a table of each";
    ASSERT_EQ(all[0]["rows"].size(), 2U);
    EXPECT_TRUE(all[0]["rows"][0]["ratio"].is_null());
    EXPECT_EQ(all[0]["rows"][0]["first_runs"], first ? 0 : 3);
    EXPECT_EQ(all[0]["rows"][0]["second_runs"], first ? 3 : 0);
    EXPECT_TRUE(says(all[0], "no point has runs on both sides that can be compared"));
    EXPECT_EQ(all[1]["rows"][0]["runs"], 3);
  }
}

// Both studies call their repeats 1, 2, 3.
TEST_F(Sides, FailuresOfAnotherStudyAreReported) {
  const fs::path good = study("good", {"m"}, 1);
  const Store bad(folder_ / "bad");
  for (Json json : drifting_study()) {
    json["session"] = "t";
    json["status"] = "failed";
    json["reason"] = "rank 1 was killed";
    bad.write(json["point"].get<std::string>(), json["repeat"].get<int>(), json, "");
  }
  const std::string printed = text({good, folder_ / "bad"}, {});
  expect_parts(printed, {"6 runs of 2 points that ended as failed: rank 1 was killed"});
}

TEST_F(Sides, UnlikeMachinesAreReportedFirst) {
  const std::string printed = text({study("one", {"m"}, 1), study("other", {"t"}, 1.1, 2)}, {});
  EXPECT_TRUE(
      printed.starts_with("quick: 2 studies side by side\nWarning: the sides ran on different "
                          "machines: A CPU, 64 CPUs, "
                          "256 GB (first), A CPU, 2 CPUs, 256 GB (second)"))
      << printed.substr(0, 300);
}

TEST_F(Sides, AWarningIsPrintedOnceWithItsStudy) {
  const fs::path one = study("one", {"m"}, 1), other = folder_ / "other";
  const Store store(other);
  for (Json json : drifting_study()) {
    json["session"] = "t";
    json["provenance"]["machine_load"] = {{"busy", true}, {"why", "make ran"}};
    store.write(json["point"].get<std::string>(), json["repeat"].get<int>(), json, "");
  }
  const std::string printed = text({one, other}, {});
  const std::string warning = "the machine was busy in 6 of 6 runs (e.g. make ran";
  const auto at = printed.find("Warning: " + other.string() + ": " + warning);
  ASSERT_NE(at, std::string::npos) << printed;
  EXPECT_EQ(printed.find(warning, printed.find(warning) + 1), std::string::npos) << printed;
}

TEST_F(Sides, PoolingIsAskedForAndNestsSessions) {
  const Json pooled = tables({study("monday", {"m"}, 1), study("tuesday", {"t", "u"}, 1)}, true);
  ASSERT_EQ(pooled.size(), 1U);
  const Json& row = pooled[0]["rows"][1];
  EXPECT_EQ(row["runs"], 9);
  EXPECT_TRUE(says(pooled[0], "intervals cover how sessions differ, up to 3 a row")) << pooled[0];
  // Paired by sessions: of three log ratios one is smaller by log 1.02.
  const double alike = std::log(1.8) - (std::log(1.01) + std::log(0.99)) / 3;
  const double mean = alike - std::log(1.02) / 3, error = std::log(1.02) / 3;
  EXPECT_NEAR(row["speed_up"].get<double>(), std::exp(mean), 1e-6);
  EXPECT_NEAR(row["speed_up_low"].get<double>(), std::exp(mean - 4.302653 * error), 1e-6);
  // The rounds of each session drift alike: its sessions do not differ.
  EXPECT_NEAR(pooled[0]["rows"][0]["fit_seconds_low"].get<double>(),
              pooled[0]["rows"][0]["fit_seconds_high"].get<double>(), 1e-6);
}

TEST_F(Sides, SeveralSessionsInOneStudyAreReported) {
  EXPECT_TRUE(says(tables({study("both", {"m", "t"}, 1)})[0],
                   "intervals cover how sessions differ, up to 2 a row"));
  const Json one = tables({study("one", {"m"}, 1)})[0];
  EXPECT_FALSE(says(one, "intervals cover how sessions differ"));
  EXPECT_TRUE(says(one, "and do not cover how sessions differ")) << one;
}

TEST_F(Sides, RecordsOneByOneAreOneSide) {
  std::vector<fs::path> places;
  for (const Record& record : load_store(study("monday", {"m"}, 1)).records) {
    places.emplace_back(record.where());
  }
  EXPECT_EQ(tables(places).size(), 1U);
  places.push_back(study("tuesday", {"t"}, 1.1));
  const Json all = tables(places);
  ASSERT_EQ(all.size(), 3U);
  expect_parts(all[0]["title"].get<std::string>(), {"the records named (second)"});
}

TEST_F(Sides, WhatHasNothingInCommonStandsTogether) {
  const fs::path published = fs::path(PACELINE_SOURCE_DIR) / "results/reference/cassava-resnet50";
  for (const Json& table : tables({study("monday", {"m"}, 1), published})) {
    expect_no_parts(table["title"].get<std::string>(), {"against"});
  }
}

}  // namespace
}  // namespace paceline
