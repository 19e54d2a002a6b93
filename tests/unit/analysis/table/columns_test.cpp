// Which columns a report shows, and what a run cost.
#include <gtest/gtest.h>

#include "analysis/study/cost.h"
#include "engine/core/error.h"
#include "engine/facts/timing.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

Section section_with(const std::vector<std::string>& choice) {
  Section section = report_section(drifting_study());
  choose_columns(section, choice);
  for (const auto& row : section.table.rows) EXPECT_EQ(row.size(), section.table.columns.size());
  return section;
}

std::vector<std::string> shown(const std::vector<std::string>& choice) {
  std::vector<std::string> keys;
  for (const Column& column : section_with(choice).table.columns) {
    if (column.shown) keys.push_back(column.key);
  }
  return keys;
}

bool has(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

TEST(Columns, AreChosenByNameAndGroup) {
  const auto usual = shown({});
  EXPECT_TRUE(has(usual, "fit_seconds") && has(usual, "speed_up"));
  EXPECT_FALSE(has(usual, "core_hours")) << "the usual table stays as narrow as it is";
  const auto more = shown({"+cost"});
  EXPECT_TRUE(has(more, "core_hours") && has(more, "fit_seconds"));
  EXPECT_FALSE(has(more, "gpu_hours")) << "replicas on cores";
  const auto few = shown({"scaling", "core_hours"});
  EXPECT_TRUE(has(few, "efficiency") && has(few, "core_hours") && has(few, "gpus"));
  EXPECT_FALSE(has(few, "fit_seconds"));
  EXPECT_FALSE(has(shown({"-time"}), "fit_seconds"));
  EXPECT_TRUE(has(shown({"-time", "+step_seconds"}), "step_seconds"));
  expect_error(ErrorKind::usage, {"did you mean \"core_hours\""}, [&] { shown({"+core_hour"}); });
}

TEST(Columns, TheLegendReportsHowTheyAreMade) {
  const auto notes = section_with({"+cost"}).notes;
  EXPECT_EQ(std::count_if(notes.begin(), notes.end(),
                          [](const std::string& note) { return note.starts_with("GPU-hours"); }),
            1);
  for (const std::string& note : section_with({}).notes)
    EXPECT_FALSE(note.starts_with("GPU-hours"));
  const auto about_time = [](const std::string& note) { return note.starts_with("fit seconds: "); };
  EXPECT_TRUE(std::ranges::any_of(section_with({}).notes, about_time));
  EXPECT_FALSE(std::ranges::any_of(section_with({"scaling"}).notes, about_time)) << "hidden";
}

paceline::Run costly() {
  Json record = sample_record({.gpus = 2, .fit_seconds = 3000});
  record["timing"]["setup_seconds"] = 300.0;
  record["timing"]["evaluation_seconds"] = 300.0;
  return make_run(Record(record, "record"));
}

TEST(Cost, IsWhatTheRunOrItsJobHeld) {
  paceline::Run run = costly();
  EXPECT_DOUBLE_EQ(*core_hours(run), 2.0);
  EXPECT_FALSE(gpu_hours(run));
  RunRecord& record = own_record(run);
  record.layout.replicas_are = "gpus";
  EXPECT_DOUBLE_EQ(*gpu_hours(run), 2.0);
  record.provenance.allocation.emplace();
  record.provenance.allocation->gpus = "0,1,2,3";
  record.provenance.allocation->cpus_per_node = "72(x2),36";
  record.layout.nodes = 3;
  EXPECT_DOUBLE_EQ(*gpu_hours(run), 12.0);
  EXPECT_DOUBLE_EQ(*core_hours(run), 180.0);
  EXPECT_FALSE(sum_over_nodes("many"));
  EXPECT_EQ(sum_over_nodes("4"), 4.0);
}

TEST(Cost, MemoryOfANode) {
  paceline::Run run = costly();
  EXPECT_FALSE(node_memory(run)) << "a record of an earlier version";
  RunRecord& record = own_record(run);
  record.provenance.machine_load.peak_memory_bytes = 6'000'000'000;
  record.layout.nodes = 3;
  EXPECT_DOUBLE_EQ(*node_memory(run), 2e9);
}

TEST(Cost, ShareOfThePeak) {
  paceline::Run run = costly();
  RunRecord& record = own_record(run);
  record.plan.flops_per_sample = 1e9;
  record.probe.flops_per_second = 1e12;
  record.gpus.emplace_back().name = "NVIDIA H200";
  record.throughput->samples = 4000;
  run.samples_per_second = 400;
  EXPECT_DOUBLE_EQ(*model_operations(run), 4e12);
  EXPECT_DOUBLE_EQ(*probe_operations(run), 2 * 1e12 * 10);
  run.precision = "bf16";
  EXPECT_DOUBLE_EQ(*peak_operations(run), 2 * 989.5e12 * 10);
}

// Of somebody's own program: as its study states them, or by its parameters and tokens.
TEST(Cost, OperationsOfAnyProgram) {
  paceline::Run run = costly();
  RunRecord& record = own_record(run);
  record.plan = {};
  record.plan.parameter_count = 124'000'000;
  *record.throughput = {.samples_per_second = 1000, .samples = 10'000};
  run.samples_per_second = 1000;
  EXPECT_FALSE(model_operations(run)) << "samples are of any size";
  record.throughput->unit = "tokens";
  EXPECT_DOUBLE_EQ(*model_operations(run), 6 * 124e6 * 10'000);
  record.parameters.set("flops_per_item", 1e9);
  EXPECT_DOUBLE_EQ(*model_operations(run), 1e13);
  EXPECT_FALSE(peak_operations(run));
  record.gpus.emplace_back().name = "NVIDIA H200";
  record.provenance.program.emplace().precision = "bf16";
  run.precision.clear();
  EXPECT_DOUBLE_EQ(*peak_operations(run), 2 * 989.5e12 * 10);
  record.parameters.set("peak_tflops", 100.0);
  EXPECT_DOUBLE_EQ(*peak_operations(run), 2 * 100e12 * 10);
  record.throughput->better = "more";
  EXPECT_FALSE(model_operations(run)) << "of what is no second";
}

// By the driver's whole name: parts of it belong to other cards.
TEST(Cost, APeakIsOfOneCard) {
  EXPECT_EQ(data_sheet_peak("NVIDIA H200", "bf16"), 989.5e12);
  EXPECT_EQ(data_sheet_peak("NVIDIA H200 NVL", "bf16"), 835.5e12);
  EXPECT_EQ(data_sheet_peak("Tesla T4", "fp16"), 65e12);
  EXPECT_FALSE(data_sheet_peak("NVIDIA T400 4GB", "fp16"));
  EXPECT_FALSE(data_sheet_peak("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "bf16"));
  EXPECT_FALSE(data_sheet_peak("NVIDIA H100 PCIe", "bf16"));
  EXPECT_EQ(data_sheet_peak("Tesla V100-SXM2-16GB", "fp16"), 125e12);
  EXPECT_FALSE(data_sheet_peak("Tesla V100-SXM2-16GB", "bf16")) << "it has no such products";
  EXPECT_FALSE(data_sheet_peak("a GPU of next year", "fp32"));
}

}  // namespace
}  // namespace paceline
