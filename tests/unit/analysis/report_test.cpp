#include "analysis/report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "analysis/findings/findings.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/expected_runs.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

fs::path reference(const std::string& name) {
  return fs::path(PACELINE_SOURCE_DIR) / "results/reference" / name;
}

void write_quick(const TemporaryFolder& folder) {
  int index = 0;
  const Store store(folder / "quick");
  for (const Json& json : drifting_study()) store.write(json["point"], ++index, json, "");
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
  options.style.details = true;
  return options;
}

Json make_rows(const std::string& study, Base base) {
  return Json::parse(printed(reference(study), with(base, Format::json)))["tables"];
}

TEST(Report, CassavaBestAgainstBest) {
  const std::string text = printed(reference("cassava-resnet50"), with(Base::best));
  expect_parts(text, {"cassava-resnet50, fixed-epochs scaling (published)",
                      "speed-up 1.69 / 2.26 / 2.63 for 2, 3, 4 replicas",
                      "Karp-Flatt 0.181 / 0.165 / 0.174", "the cause may be a fixed time per run",
                      "the published table does not state the rate (148 to 396 samples/s)",
                      "562 s (mirrored, cpus-per-task 8)"});
  expect_no_parts(text, {"±"});
}

// The answer, the columns that judge, what changes them, and at most five findings.
TEST(Report, AScreenIsShort) {
  for (const char* study : {"cassava-resnet50", "csc-gpt-neo", "csc-resnet50", "dlperf-gpt",
                            "habana-gaudi-resnet50", "kempner-resnet50", "llm-foundry-13b"}) {
    ReportOptions options;
    options.style.width = options.style.terminal_width = 100;
    const std::string text = printed(reference(study), options);
    const std::vector<std::string> lines = split(text, '\n');
    EXPECT_LE(lines.size(), 44U) << study << '\n' << text;
    for (const std::string& line : lines) EXPECT_LE(display_width(line), 100U) << line;
    expect_parts(text, {"--verbose has ", "what each number is"});
    expect_no_parts(text, {"Hoefler", "barrier to barrier", "Karp-\n"});
  }
}

// What forbids, brackets or changes a verdict or a ratio.
TEST(Report, AScreenHasEachFindingThatChangesHowItIsRead) {
  using enum FindingKind;
  const auto changes = {survivors,     sessions_differ,  rounds_trend,    rounds_step,
                        slow_rounds,   slow_first_round, rounds_resemble, hidden_loss,
                        above_ideal,   lower_quality,    quality_unclear, implied_samples,
                        rate_off_time, control,          above_peak,      time_above_program,
                        far_cpus};
  Section section{.title = "a study"};
  for (int kind = 0; kind <= static_cast<int>(control); ++kind) {
    const auto each = static_cast<FindingKind>(kind);
    section.findings.push_back(to_statement({each, std::string(to_string(each)) + " is so"}));
  }
  const Document document{.sections = {section}, .is_brief = true};
  const std::string screen = to_text(document), all = to_text(document, {.details = true});
  std::size_t others = 0;
  for (const Statement& finding : section.findings) {
    expect_parts(all, {finding.text});
    others += contains(screen, "- " + finding.text) ? 1 : 0;
  }
  for (const FindingKind kind : changes) {
    expect_parts(screen, {"- " + std::string(to_string(kind)) + " is so"});
  }
  EXPECT_EQ(others - changes.size(), kMostOnScreen);
}

// A screen has the tables that fit, and of others the answers and what each is read by.
TEST(Report, ManyTablesAreAnswersWithTheirCaveats) {
  Document document{.is_brief = true};
  for (const char* name : {"a", "b", "c", "d"}) {
    Section section{.title = name, .headline = "speed-up 2"};
    section.caveats = {
        std::string(name) + " has no base",
        std::string(name) + " is " + std::string(150, 'x') + ' ' + std::string(150, 'x')};
    for (const FindingKind kind : {FindingKind::lower_quality, FindingKind::steady}) {
      section.findings.push_back(
          to_statement({kind, std::string(to_string(kind)) + " in " + name}));
    }
    document.sections.push_back(section);
  }
  const std::string screen = to_text(document);
  expect_parts(screen, {"a\nspeed-up 2\n", "steady in a", "- b: speed-up 2", "- d: speed-up 2",
                        "d has no base", "lower_quality in d"});
  expect_no_parts(screen, {"steady in d"});
  EXPECT_LE(std::ranges::count(screen, '\n'), 30) << screen;
  document.sections.pop_back();
  document.sections.pop_back();
  expect_parts(to_text(document), {"a\nspeed-up 2\n", "steady in b"});
  document.sections.resize(40, document.sections.front());
  expect_parts(to_text(document), {"- a: speed-up 2", "more tables\n"});
  EXPECT_LE(std::ranges::count(to_text(document), '\n'), 30);
}

// Parts of one answer, as of `plan`, have no titles to name them by.
TEST(Report, PartsWithoutTitlesStayWhole) {
  Document document{.is_brief = true};
  document.sections.resize(2);
  for (Section& section : document.sections) section.findings.resize(20, Statement("is so"));
  expect_no_parts(to_text(document), {"--only"});
  EXPECT_GE(std::ranges::count(to_text(document), '\n'), 40);
}

// Sentences of rows are of that row.
TEST(Report, OnlySentencesOfSeriesAreMerged) {
  const auto merged = merge_alike({{FindingKind::grows, "ring: it grows"},
                                   {FindingKind::grows, "mpi: it grows"},
                                   {FindingKind::survivors, "2 replicas: 3 of 5"},
                                   {FindingKind::survivors, "4 replicas: 3 of 5"}});
  ASSERT_EQ(merged.size(), 3U);
  EXPECT_EQ(merged[0].text, "ring, mpi: it grows");
}

TEST(Report, CassavaMatched) {
  const Json tables = make_rows("cassava-resnet50", Base::matched);
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
  expect_parts(printed(reference("cassava-resnet50"), with(Base::matched)),
               {"speed-up 1.67 to 1.70 / 2.21 to 2.27 / 2.50 to 2.64 for 2, 3, 4 replicas",
                "no speed-up for 4 replicas (mirrored): there is no run of one replica with"});
}

TEST(Report, PublishedRatesMakeATableAPrecisionAndType) {
  const Json tables = make_rows("imagenet-resnet50", Base::matched);
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
  write_quick(folder);
  std::ofstream(folder / "quick/9.1.json") << "{\"schema\": 1, ";
  ReportOptions options;
  options.out = folder / "out";
  std::ostringstream stream;
  const WrittenFiles files = write_report({folder / "quick"}, options, stream);
  EXPECT_EQ(files.tables.size(), 4U);
  ASSERT_EQ(files.plots.size(), 4U);  // speed-up, loss, efficiency and breakdown
  for (const auto& file : files.tables) EXPECT_GT(fs::file_size(file), 100U);
  for (const auto& file : files.plots) EXPECT_GT(fs::file_size(file), 1000U);
  expect_parts(stream.str(), {"not JSON", "9.1.json:1:",
                              "report: " + (folder / "out/report.html").string() + " (open it",
                              "beside it: report.json, report.md, report.csv, speedup.svg"});
  EXPECT_NO_THROW(write_report({folder / "quick"}, options, stream));
}

TEST(Report, PointsThatHaveNotRunHaveNoRecordsToLinkTo) {
  const TemporaryFolder folder;
  write_quick(folder);
  write_expected_runs(
      folder / "quick",
      {"quick", "mnist-cnn", 3, {planned_point(1), planned_point(2), planned_point(4)}});
  ReportOptions options;
  options.out = folder / "out";
  options.plots.clear();
  std::ostringstream stream;
  write_report({folder / "quick"}, options, stream);
  const std::string page = read_text(folder / "out/report.html");
  expect_parts(page, {"not run", ".json\">1</a>"});
  expect_no_parts(page, {"href=\"\""});
}

TEST(Report, PointsWhoseRecordsCannotBeReadAreNotReportedToBeNotRun) {
  const TemporaryFolder folder;
  write_quick(folder);
  Point point = planned_point(8);
  fs::create_directories(folder / "quick" / point.folder());
  std::ofstream(folder / "quick" / point.folder() / "1.1.json") << "half";
  point.set("epochs", 2);  // is fixed: no folder is named by it
  write_expected_runs(folder / "quick", {"quick", "mnist-cnn", 1, {point}});
  std::ostringstream stream;
  write_report({folder / "quick"}, {}, stream);
  expect_parts(stream.str(), {"unreadable"});
  expect_no_parts(stream.str(), {"not run"});
}

int refusal_code(const fs::path& out) {
  ReportOptions options;
  options.out = out;
  options.plots.clear();
  std::ostringstream stream;
  try {
    write_report({reference("cassava-resnet50")}, options, stream);
  } catch (const Error& error) {
    EXPECT_TRUE(stream.str().empty());
    return exit_code(error.kind());
  }
  return 0;
}

TEST(Report, ReplacesAnOlderReportAndNothingElse) {
  const Scratch folder;
  EXPECT_EQ(refusal_code(folder / "new"), 0);
  EXPECT_EQ(refusal_code(folder / "new"), 0);
  fs::create_directory(folder / "foreign");
  std::ofstream(folder / "foreign/report.md") << "my thesis";
  EXPECT_EQ(refusal_code(folder / "foreign"), 65);
  EXPECT_EQ(read_text(folder / "foreign/report.md"), "my thesis");
  EXPECT_FALSE(fs::exists(folder / "foreign/report.json"));
  std::ofstream(folder / "foreign/report.json") << "{\"rows\": []}";
  EXPECT_EQ(refusal_code(folder / "foreign"), 65);
  EXPECT_EQ(refusal_code(folder / "foreign/report.md"), 64);
  fs::create_directories(folder / "new/report.csv.d");
  fs::remove(folder / "new/report.csv");
  fs::rename(folder / "new/report.csv.d", folder / "new/report.csv");
  EXPECT_EQ(refusal_code(folder / "new"), 65);
}

TEST(Report, PrintsTheTableBeforeItRefusesThePlot) {
  const Scratch folder;
  const std::string before = std::getenv("PATH");
  setenv("PATH", folder.path().c_str(), 1);
  ReportOptions options;
  options.out = folder / "out";
  std::ostringstream stream;
  expect_error(ErrorKind::usage, {"gnuplot-nox"},
               [&] { write_report({reference("cassava-resnet50")}, options, stream); });
  setenv("PATH", before.c_str(), 1);
  expect_parts(stream.str(), {"574"});
  EXPECT_TRUE(fs::exists(folder / "out/report.json"));
  EXPECT_FALSE(fs::exists(folder / "out/speedup.svg"));
}

TEST(Report, BadRequestsPrintNothing) {
  std::ostringstream stream;
  EXPECT_THROW(write_report({"/nonexistent/study"}, {}, stream), Error);
  ReportOptions options;
  options.plots = {"gif"};
  EXPECT_THROW(write_report({reference("cassava-resnet50")}, options, stream), Error);
  const Scratch empty;
  EXPECT_THROW(write_report({empty.path()}, {}, stream), Error);
  EXPECT_TRUE(stream.str().empty());
}

// Seconds of this thread, whatever else the machine does.
double report_cpu_seconds(int points) {
  const Scratch folder;
  for (int gpus = 1; gpus <= points; ++gpus) {
    const fs::path point = folder / ("study/gpus=" + std::to_string(gpus));
    fs::create_directories(point);
    for (int repeat = 1; repeat <= 20; ++repeat) {
      Json json = sample_record({.gpus = gpus, .repeat = repeat, .fit_seconds = 20.0 / gpus});
      json["phases"] = Json::array({json["phases"][0]});
      std::ofstream(point / (std::to_string(repeat) + ".1.json")) << json.dump();
    }
  }
  const std::clock_t start = std::clock();
  expect_parts(printed(folder / "study", {}), {"replicas"});
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Eight times the records take about eight times the time: nothing is quadratic.
TEST(Report, ManyRecordsTakeTheirShareOfTime) {
  report_cpu_seconds(4);  // pages and caches are warm
  const double few = report_cpu_seconds(8), many = report_cpu_seconds(64);
  EXPECT_LT(many, 24 * few) << few << " s and " << many << " s";
}

// Each is named with file and key, and none is in a mean.
TEST(Report, BadRecordsAreNamedAndLeftOut) {
  const Scratch folder;
  const fs::path point = folder / "quick/gpus=1";
  fs::create_directories(point);
  const auto put = [&](const char* name, const Json& json) {
    std::ofstream(point / name) << json.dump();
  };
  const auto changed = [](const char* pointer, const Json& value) {
    Json json = sample_record({.repeat = 9, .fit_seconds = 1000});
    json[Json::json_pointer(pointer)] = value;
    return json;
  };
  put("1.1.json", sample_record({.repeat = 1, .fit_seconds = 20}));
  put("2.1.json", changed("/schema", 99));
  put("3.1.json", changed("/timing/fit_seconds", -1));
  put("4.1.json", changed("/timing/fit_seconds", 0));
  put("5.1.json", changed("/throughput/samples_per_second", "NaN"));
  std::ofstream(point / "6.1.json") << changed("/repeat", 6).dump().substr(0, 300);
  std::string nan = changed("/repeat", 7).dump();
  nan.replace(nan.find("1000"), 4, "NaN ");
  std::ofstream(point / "7.1.json") << nan;
  fs::create_directories(folder / "copy/gpus=1");
  fs::copy_file(point / "1.1.json", folder / "copy/gpus=1/1.1.json");
  StoreContent content = load_store(folder.path());
  EXPECT_EQ(content.records.size(), 1U);
  std::string all;
  for (const Rejected& rejected : content.rejected) all += rejected.reason + "\n";
  expect_parts(
      all, {"2.1.json, key /schema", "3.1.json, key /timing", "4.1.json, key /timing/fit_seconds",
            "5.1.json, key /throughput/samples_per_second", "6.1.json:1:", "7.1.json:1:", "key"});
  EXPECT_EQ(content.rejected.size(), 7U) << all;
  const std::string table = printed(folder.path(), with(Base::matched, Format::json));
  EXPECT_EQ(Json::parse(table)["tables"][0]["rows"][0]["fit_seconds"], 20);
  expect_parts(table, {"ignored record"});
}

TEST(Report, RunsOfUnlikeDataOrStudiesAreNotAveragedInSilence) {
  const Scratch folder;
  std::vector<Json> records = drifting_study();
  for (Json& json : records) json["provenance"]["data_hash"] = "1111";
  records[0]["provenance"]["data_hash"] = "2222";
  records[1]["study"] = "another";
  const Store store(folder / "quick");
  for (const Json& json : records) store.write(json["point"], json["repeat"], json, "");
  const std::string text = printed(folder / "quick", {});
  expect_parts(text, {"Warning: different data: hash 1111 (5 runs), hash 2222 (1 run)"});
  EXPECT_NE(text.find("different data"), text.rfind("different data")) << "and a label";
  expect_parts(text, {"records of several studies: another (1 run), quick (5 runs)"});
}

}  // namespace
}  // namespace paceline
