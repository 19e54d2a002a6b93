#include "analysis/report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using testing::drifting_study;
using testing::sample_record;
using testing::TemporaryFolder;

fs::path reference(const std::string& name) {
  return fs::path(PACELINE_SOURCE_DIR) / "results/reference" / name;
}

std::string printed(const fs::path& study, const ReportOptions& options) {
  std::ostringstream stream;
  write_report({study}, options, stream);
  return stream.str();
}

ReportOptions with(Base base, Format format = Format::text) {
  ReportOptions options;
  options.base = base;
  options.format = format;
  return options;
}

Json rows_of(const std::string& study, Base base) {
  return Json::parse(printed(reference(study), with(base, Format::json)))["tables"];
}

TEST(Report, CassavaBestAgainstBest) {
  const std::string text = printed(reference("cassava-resnet50"), with(Base::best));
  EXPECT_NE(text.find("cassava-resnet50, fixed-epochs scaling (published)"), std::string::npos);
  EXPECT_NE(text.find("speed-up 1.69 / 2.26 / 2.63 for 2, 3, 4 replicas"), std::string::npos);
  EXPECT_NE(text.find("Karp-Flatt 0.181 / 0.165 / 0.174"), std::string::npos);
  EXPECT_NE(text.find("roughly constant, ~0.17: a fixed serial share"), std::string::npos);
  EXPECT_NE(text.find("the page leaves out the rate (148 to 396 samples/s)"), std::string::npos);
  EXPECT_NE(text.find("562 s (mirrored, cpus-per-task 8)"), std::string::npos);
  EXPECT_EQ(text.find("±"), std::string::npos);
}

TEST(Report, CassavaMatched) {
  const Json tables = rows_of("cassava-resnet50", Base::matched);
  ASSERT_EQ(tables.size(), 1U);
  const Json& rows = tables[0]["rows"];
  ASSERT_EQ(rows.size(), 14U);
  // cpus-per-task 4, 8 and 16 at 2, 3 and 4 GPUs, against 565, 562 and 564 s.
  const double expected[] = {565. / 339, 562. / 334, 564. / 332, 565. / 256, 562. / 251,
                             564. / 249, 565. / 226, 562. / 220, 564. / 214};
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(rows[4 + i]["speed_up"].get<double>(), expected[i], 1e-9) << i;
    EXPECT_TRUE(rows[4 + i]["speed_up_low"].is_null());
  }
  EXPECT_EQ(rows[13]["cpus_per_task"], 32);
  EXPECT_TRUE(rows[13]["speed_up"].is_null());
  const std::string text = printed(reference("cassava-resnet50"), {});
  EXPECT_NE(text.find("speed-up 1.67 to 1.70 / 2.21 to 2.27 / 2.50 to 2.64 for 2, 3, 4 replicas"),
            std::string::npos);
  EXPECT_NE(text.find("no speed-up for 4 replicas (mirrored): there is no run of one replica with"),
            std::string::npos);
}

TEST(Report, PublishedRatesMakeATableAPrecisionAndType) {
  const Json tables = rows_of("imagenet-resnet50", Base::matched);
  std::size_t rows = 0;
  std::set<std::string> types;
  for (const Json& table : tables) {
    rows += table["rows"].size();
    types.insert(table["precision"].get<std::string>() + " " + table["scaling"].get<std::string>());
  }
  EXPECT_EQ(rows, 27U);
  EXPECT_EQ(types, (std::set<std::string>{"fp32 weak", "amp weak", "amp unknown", "tf32 unknown",
                                          "fp16 strong"}));
}

TEST(Report, WritesTablesAndPlots) {
  const TemporaryFolder folder;
  const Store store(folder / "quick");
  int index = 0;
  for (const Json& json : drifting_study()) {
    store.write(json["point"], ++index, json, "");
  }
  std::ofstream(folder / "quick/9.1.json") << "{\"schema\": 1, ";
  ReportOptions options;
  options.out = folder / "out";
  std::ostringstream stream;
  const ReportFiles files = write_report({folder / "quick"}, options, stream);
  EXPECT_EQ(files.tables.size(), 3U);
  ASSERT_EQ(files.plots.size(), 6U);  // speed-up, efficiency and breakdown, twice each
  for (const auto& file : files.tables) EXPECT_GT(fs::file_size(file), 100U);
  for (const auto& file : files.plots) EXPECT_GT(fs::file_size(file), 1000U);
  const std::string text = stream.str();
  EXPECT_NE(text.find("ignored record: not JSON"), std::string::npos);
  EXPECT_NE(text.find("9.1.json, line 1"), std::string::npos);
  EXPECT_NE(text.find("speed-up plot: " + files.plots[0].string()), std::string::npos);
  EXPECT_NO_THROW(write_report({folder / "quick"}, options, stream));
}

TEST(Report, PrintsTheTableBeforeItRefusesThePlot) {
  const TemporaryFolder folder;
  const std::string before = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  ReportOptions options;
  options.out = folder / "out";
  std::ostringstream stream;
  int code = 0;
  try {
    write_report({reference("cassava-resnet50")}, options, stream);
  } catch (const Error& error) {
    code = exit_code(error.kind());
    EXPECT_NE(std::string(error.what()).find("gnuplot-nox"), std::string::npos);
  }
  setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(code, 64);
  EXPECT_NE(stream.str().find("574"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder / "out/report.json"));
  EXPECT_FALSE(fs::exists(folder / "out/speedup.svg"));
}

TEST(Report, BadRequestsPrintNothing) {
  std::ostringstream stream;
  EXPECT_THROW(write_report({"/nonexistent/study"}, {}, stream), Error);
  ReportOptions options;
  options.plots = {"gif"};
  EXPECT_THROW(write_report({reference("cassava-resnet50")}, options, stream), Error);
  const TemporaryFolder empty;
  EXPECT_THROW(write_report({empty.path()}, {}, stream), Error);
  EXPECT_TRUE(stream.str().empty());
}

// Twice the records take about twice the time: nothing is quadratic.
TEST(Report, ManyRecordsTakeSeconds) {
  const TemporaryFolder folder;
  for (int gpus = 1; gpus <= 20; ++gpus) {
    const fs::path point = folder / ("study/gpus=" + std::to_string(gpus));
    fs::create_directories(point);
    for (int repeat = 1; repeat <= 50; ++repeat) {
      Json json = sample_record(
          {.gpus = gpus, .repeat = repeat, .round = repeat, .fit_seconds = 20.0 / gpus});
      json["phases"] = Json::array({json["phases"][0]});
      std::ofstream(point / (std::to_string(repeat) + ".1.json")) << json.dump();
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string text = printed(folder / "study", {});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 5.0);  // a tenth of what 10,000 may take, with room for a busy machine
  EXPECT_NE(text.find("paired"), std::string::npos);
}

}  // namespace
}  // namespace paceline
