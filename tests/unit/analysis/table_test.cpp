#include "analysis/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/render.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/csv.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

using testing::content_of;
using testing::drifting_study;
using testing::sample_record;

Table table_of(const std::vector<Json>& records, Base base = Base::matched) {
  const Study study = make_studies(content_of(records)).at(0);
  const Comparison comparison = compare(study, base);
  std::vector<RowFacts> facts;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    facts.push_back(row_facts(study, comparison, i));
  }
  return make_table(study, comparison, facts);
}

const Cell& cell(const Table& table, std::size_t row, const std::string& key) {
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    if (table.columns[k].key == key) return table.rows.at(row).at(k);
  }
  throw std::runtime_error("no column " + key);
}

bool shown(const Table& table, const std::string& key) {
  for (const Column& column : table.columns) {
    if (column.key == key) return column.shown;
  }
  return false;
}

TEST(Table, HasWhatTheRecordsSay) {
  const Table table = table_of(drifting_study());
  EXPECT_EQ(table.title, "mnist-cnn, fp32, fixed-epochs scaling");
  EXPECT_EQ(table.interval, "paired");
  EXPECT_EQ(cell(table, 1, "ntasks").text, "2");
  EXPECT_EQ(cell(table, 1, "speed_up").text, "1.80 ±0.05");
  EXPECT_EQ(cell(table, 1, "efficiency").text, "90.0 %");
  EXPECT_EQ(cell(table, 1, "karp_flatt").text, "0.111");
  EXPECT_EQ(cell(table, 1, "input_stall").text, "2.0 %");
  EXPECT_EQ(cell(table, 1, "exposed_communication").text, "8.0 %");
  EXPECT_EQ(cell(table, 1, "test_accuracy").text, "98.40 %");
  EXPECT_EQ(cell(table, 1, "step_seconds").text, "5.000");
  EXPECT_DOUBLE_EQ(*cell(table, 1, "step_seconds").value, 0.005);
  // Three runs that differ by 60 %: an interval as wide as this is not symmetric.
  EXPECT_NE(cell(table, 0, "fit_seconds").text.find(" ["), std::string::npos);
  EXPECT_FALSE(shown(table, "gpu_utilization"));
  EXPECT_FALSE(shown(table, "label"));
  EXPECT_TRUE(shown(table, "cpus_per_replica"));
}

TEST(Table, TellsWhichRunsReachedTheirGoal) {
  auto records = drifting_study();
  for (Json& json : records) {
    const int gpus = json["layout"]["gpus"];
    json["quality"]["test_top5"] = 0.999;
    json["quality"]["until"] = {
        {"goal", "test_accuracy>=0.98"}, {"reached", gpus == 1}, {"epochs", 3}};
    if (gpus == 2) json["throughput"]["samples"] = 300000;  // it needed more
  }
  const Table table = table_of(records);
  EXPECT_EQ(cell(table, 0, "epochs_to_goal").text, "3.0");
  EXPECT_EQ(cell(table, 1, "epochs_to_goal").text, "");
  EXPECT_EQ(cell(table, 1, "label").text, "goal not reached");
  EXPECT_EQ(cell(table, 0, "test_top5").text, "99.90 %");
  bool said = false;
  for (const std::string& note : table.notes) {
    said = said || note.find("first evaluation of test_accuracy>=0.98") != std::string::npos;
  }
  EXPECT_TRUE(said);
  EXPECT_FALSE(shown(table_of(drifting_study()), "epochs_to_goal"));
}

TEST(Table, LabelsAreInTheTitleOrInAColumn) {
  auto records = drifting_study();
  for (Json& json : records) json["flags"]["synthetic"] = true;
  EXPECT_NE(table_of(records).title.find("(synthetic)"), std::string::npos);
  Json json = sample_record({.gpus = 4});
  json["flags"]["oversubscribed"] = true;
  records.push_back(json);
  const Table table = table_of(records);
  EXPECT_EQ(table.title.find("synthetic"), std::string::npos);
  EXPECT_EQ(cell(table, 0, "label").text, "synthetic");
  EXPECT_EQ(cell(table, 2, "label").text, "oversubscribed");
  EXPECT_TRUE(shown(table, "label"));
}

TEST(Table, UnlikeIntervalsAreSaidRowByRow) {
  auto records = drifting_study();
  for (int repeat = 1; repeat <= 2; ++repeat) {
    records.push_back(sample_record({.gpus = 4,
                                     .repeat = repeat,
                                     .round = repeat,
                                     .fit_seconds = 5.0 + repeat,
                                     .session = "s2"}));
  }
  const Table table = table_of(records);
  EXPECT_EQ(table.interval, "mixed");
  EXPECT_EQ(cell(table, 1, "interval").text, "paired");
  EXPECT_EQ(cell(table, 2, "interval").text, "welch");
}

TEST(Table, AWholeNumberThatWasNotMeasuredFinerStaysWhole) {
  EXPECT_EQ(cell(table_of({sample_record({.fit_seconds = 574})}), 0, "fit_seconds").text, "574");
  EXPECT_EQ(cell(table_of({sample_record({.fit_seconds = 5.5})}), 0, "fit_seconds").text, "5.500");
}

TEST(Table, AMarginNeverReadsAsZero) {
  auto records = drifting_study();
  for (Json& json : records) {
    const int round = json["round"].get<int>();
    json["timing"]["fit_seconds"] = json["layout"]["gpus"] == 1 ? 20 : 10 + 1e-5 * round;
  }
  EXPECT_EQ(cell(table_of(records), 1, "speed_up").text, "2.00 ±0.000005");
}

TEST(Render, TextIsAligned) {
  const std::string text = render_text(table_of(drifting_study()));
  const auto lines = split(text, '\n');
  const auto width = [](const std::string& line) {
    return std::count_if(line.begin(), line.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  };
  ASSERT_GT(lines.size(), 7U);
  EXPECT_EQ(lines[4].find_first_not_of('-'), std::string::npos);
  for (const std::size_t i : {2, 3, 5, 6}) EXPECT_EQ(width(lines[i]), width(lines[4])) << lines[i];
  for (std::size_t i = 7; i < lines.size(); ++i) EXPECT_LE(width(lines[i]), 140) << lines[i];
  EXPECT_LE(width(lines[4]), 160);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(render_text(table_of(drifting_study()), {.colours = true}).find("\x1b[1m"),
            std::string::npos);
}

TEST(Render, RecordsCannotSteerTheTerminal) {
  auto records = drifting_study();
  for (Json& json : records) json["parameters"]["backend"] = "mpi\x1b[2J\n|<b>";
  const Table table = table_of(records);
  EXPECT_EQ(render_text(table).find('\x1b'), std::string::npos);
  const std::string markdown = render_markdown(table);
  EXPECT_NE(markdown.find("\\|\\<b\\>"), std::string::npos);
  EXPECT_EQ(markdown.find("\x1b"), std::string::npos);
}

TEST(Render, JsonAndCsvHaveEveryKey) {
  const Table table = table_of(drifting_study());
  const Json json = Json::parse(render_json({table}));
  EXPECT_EQ(json["schema"], 1);
  const Json& row = json["tables"][0]["rows"][1];
  EXPECT_EQ(row["gpus"], 2);
  EXPECT_TRUE(row["gpus"].is_number_integer());
  EXPECT_NEAR(row["speed_up"].get<double>(), 1.8, 1e-3);
  EXPECT_LT(row["speed_up_low"], row["speed_up"]);
  EXPECT_TRUE(row["gpu_utilization"].is_null());
  EXPECT_NEAR(row["efficiency"].get<double>(), 0.9, 1e-3);
  EXPECT_EQ(json["tables"][0]["scaling"], "fixed-epochs");

  const auto csv = parse_csv(render_csv(table), "csv");
  ASSERT_EQ(csv.size(), 3U);
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.push_back(key);
  EXPECT_EQ(csv[0].cells, keys);
  for (const CsvRow& line : csv) EXPECT_EQ(line.cells.size(), keys.size());
}

TEST(Render, MarkdownRowsHaveAllCells) {
  std::size_t bars = 0;
  for (const std::string& line : split(render_markdown(table_of(drifting_study())), '\n')) {
    if (!line.starts_with("|")) continue;
    const auto count = static_cast<std::size_t>(std::count(line.begin(), line.end(), '|'));
    if (bars == 0) bars = count;
    EXPECT_EQ(count, bars) << line;
  }
  EXPECT_GT(bars, 10U);
}

TEST(Render, FormatsAreNamed) {
  EXPECT_EQ(format_of("md"), Format::markdown);
  EXPECT_THROW(format_of("xml"), Error);
}

}  // namespace
}  // namespace paceline
