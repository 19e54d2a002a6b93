#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "engine/core/error.h"
#include "engine/facts/timing.h"
#include "results/csv.h"
#include "results/run_record.h"
#include "results/shipped.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

constexpr char kDescription[] = R"({
  "record": {"parameters": {"workload": "w"}, "layout": {"replicas_are": "gpus"}},
  "columns": {"gpus": {"to": ["/layout/gpus", "/parameters/gpus"]},
              "minutes": {"to": ["/timing/fit_seconds"], "scale": 60},
              "who": {"to": ["/provenance/stack"], "text": true},
              "remark": {"to": []}}})";

std::vector<Record> read(const std::string& description, const std::string& rows) {
  const Scratch folder;
  std::ofstream(folder / "table.json") << description;
  std::ofstream(folder / "table.csv") << rows;
  return read_published(folder.path());
}

std::string table_refusal(const std::string& description, const std::string& rows) {
  return catch_error(ErrorKind::input, [&] { read(description, rows); });
}

TEST(Published, ReadsTheTableShipped) {
  const auto folder = std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference";
  const auto cassava = read_published(folder / "cassava-resnet50");
  ASSERT_EQ(cassava.size(), 14U);
  EXPECT_EQ(cassava[0]->timing->fit_seconds, 574);
  EXPECT_EQ(cassava[13]->task_layout().cpus_per_task, 32);
  EXPECT_EQ(cassava[13]->task_layout().gpus, 4);
  EXPECT_NEAR(cassava[13]->utilization.value(), 0.63, 1e-12);
  EXPECT_EQ(cassava[0]->kind, "published");
  EXPECT_EQ(cassava[0]->study, "cassava-resnet50");
  EXPECT_FALSE(cassava[0]->task_layout().replicas_are_cores);
  const auto imagenet = read_published(folder / "imagenet-resnet50");
  ASSERT_EQ(imagenet.size(), 27U);
  EXPECT_EQ(imagenet[26]->throughput->samples_per_second, 63601);
  EXPECT_FALSE(imagenet[16]->parameters.real("batch_per_replica").has_value());
  const std::map<std::string, std::size_t> rows = {
      {"kempner-resnet50", 7}, {"ncsa-resnet50", 11},      {"csc-resnet50", 244},
      {"csc-gpt-neo", 40},     {"alcf-gaudi-resnet50", 5}, {"habana-gaudi-resnet50", 7},
      {"jsc-resnet50", 2},     {"jsc-clip-vit-l14", 5},    {"larger-resnet50", 18},
      {"nyu-gpt2", 3},         {"dlperf-gpt", 8},          {"llmc-gpt2", 7},
      {"llm-foundry-13b", 4},  {"llm-foundry-7b", 4}};
  for (const auto& [name, count] : rows) EXPECT_EQ(read_published(folder / name).size(), count);
  const auto csc = read_published(folder / "csc-gpt-neo");
  EXPECT_EQ(csc[0]->session, "2023-09-28");
  EXPECT_EQ(csc[0]->provenance.stack, "run_clm, synthetic, PyTorch 2.0.1+rocm5.4.2, 2023-09-28");
}

TEST(Published, ScalesNumbersAndLeavesOutWhatThePageDoesNotReport) {
  const auto records = read(kDescription, "gpus,minutes,who,remark\n2,1.5,\"a, b\",7\n4,1,,\n");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0]->timing->fit_seconds, 90);
  EXPECT_EQ(records[0].json()["provenance"]["stack"], "a, b");
  EXPECT_FALSE(records[1].json().contains("provenance"));
  EXPECT_EQ(records[1]->point, "gpus=4");
  const std::string joined = R"({
  "record": {"parameters": {"workload": "w"}, "layout": {"replicas_are": "gpus"}},
  "columns": {"gpus": {"to": ["/layout/gpus"]}, "minutes": {"to": ["/timing/fit_seconds"]},
              "who": {"to": ["/provenance/stack"], "text": true},
              "remark": {"to": ["/provenance/stack"], "text": true}}})";
  const auto both = read(joined, "gpus,minutes,who,remark\n2,1.5,a,b\n4,1,,c\n");
  EXPECT_EQ(both[0]->provenance.stack, "a, b");
  EXPECT_EQ(both[1]->provenance.stack, "c");
  expect_parts(records[0].where(), {"table.csv:2"});
}

TEST(Published, NamesFileAndLineOfWhatIsWrong) {
  const std::string header = "gpus,minutes\n";
  const auto expect = [](const std::string& said, const std::string& wanted,
                         const std::string& place) {
    expect_parts(said, {wanted, place});
  };
  expect(table_refusal(kDescription, header + "1,5\n2,x\n"), "\"x\" is not a number",
         "table.csv:3");
  expect(table_refusal(kDescription, header + "1\n"),
         "the row has 1 cells, but there are 2 columns", "table.csv:2");
  expect(table_refusal(kDescription, header + "0,5\n"), "at least 1", "table.csv:2");
  expect(table_refusal(kDescription, header + "2,\n"), "is missing", "table.csv:2");
  expect(table_refusal(kDescription, header), "has no rows", "table.csv");
  expect(table_refusal(kDescription, "gpu,minutes\n1,2\n"), "did you mean \"gpus\"",
         "table.json:3");
  expect(table_refusal("{\"columns\": {}}", header + "1,2\n"), "no object \"record\"",
         "table.json");
  expect(table_refusal("{\"record\": {}, \"columns\": {\"gpus\": {}, \"minutes\": {}}}",
                       header + "1,2\n"),
         "no valid description", "table.json:1");
  expect(table_refusal("[1", header + "1,2\n"), "not JSON", "table.json");
}

TEST(Csv, ReadsQuotesAndLineEnds) {
  const auto rows = parse_csv("a,b\r\n\n\"x, \"\"y\"\"\nz\",2\n3,", "t");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].cells, (std::vector<std::string>{"x, \"y\"\nz", "2"}));
  EXPECT_EQ(rows[1].line, 3U);
  EXPECT_EQ(rows[2].line, 5U);
  EXPECT_EQ(rows[2].cells, (std::vector<std::string>{"3", ""}));
  EXPECT_THROW(parse_csv("a\n\"b", "t"), Error);
}

}  // namespace
}  // namespace paceline
