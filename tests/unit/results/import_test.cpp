// Files of other tools as records.
#include "results/import/import.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "results/import/formats.h"
#include "results/run_record.h"
#include "results/store.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::string sample(const std::string& name) {
  return (fs::path(PACELINE_SOURCE_DIR) / "tests/data/import" / name).string();
}

std::string sample_text(const std::string& name) {
  return read_text(sample(name));
}

class Importing : public ::testing::Test {
 protected:
  ImportRequest request(const std::string& format, const std::vector<std::string>& files,
                        const std::vector<std::string>& set = {},
                        const std::vector<std::string>& columns = {}) const {
    return {format, files, "s", folder_.path(), set, columns, "0.1.0"};
  }

  // The records that the store has after the import, by folder.
  std::vector<Record> import(const ImportRequest& request) const {
    Import(request).write(false);
    StoreContent content = load_store(folder_.path() / request.study);
    EXPECT_TRUE(content.rejected.empty());
    return content.records;
  }

  std::vector<Record> import_text(const std::string& format, const std::string& text,
                                  const std::vector<std::string>& set = {},
                                  const std::vector<std::string>& columns = {}) const {
    std::ofstream(folder_ / "file") << text;
    return import(request(format, {(folder_ / "file").string()}, set, columns));
  }

  // What it says; and it must have written nothing.
  std::string refusal(const std::string& format, const std::string& text,
                      const std::vector<std::string>& set = {},
                      const std::vector<std::string>& columns = {}) const {
    std::ofstream(folder_ / "file") << text;
    return refusal(request(format, {(folder_ / "file").string()}, set, columns));
  }
  std::string refusal(const ImportRequest& request) const {
    std::string line;
    const bool was_there = fs::exists(folder_.path() / "s");
    try {
      Import(request).write(false);
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::input || error.kind() == ErrorKind::usage);
      line = error.what();
    }
    EXPECT_EQ(line.find('\n'), line.npos);
    EXPECT_TRUE(line.empty() || fs::exists(folder_.path() / "s") == was_there) << line;
    return line;
  }

  Scratch folder_;
};

TEST_F(Importing, NcclTestsGiveBothPlacements) {
  const auto records = import(request("nccl-tests", {sample("nccl-tests-all_reduce_perf.txt")}));
  ASSERT_EQ(records.size(), 2U);
  const RunRecord& in_place = *records[0];
  EXPECT_EQ(in_place.kind, "imported");
  EXPECT_TRUE(in_place.is_collective());
  EXPECT_EQ(in_place.collective->placement, "in place");
  EXPECT_EQ(records[1]->collective->placement, "out of place");
  EXPECT_EQ(in_place.collective->operation, "all_reduce");
  EXPECT_EQ(in_place.collective->dtype, "f32");
  EXPECT_EQ(in_place.layout.gpus, 8);
  EXPECT_EQ(in_place.layout.nodes, 2);
  EXPECT_EQ(in_place.layout.ntasks, 8);
  EXPECT_EQ(in_place.provenance.hardware, "NVIDIA GH200 120GB");
  EXPECT_EQ(in_place.hosts(), "nid005471, nid005487");
  ASSERT_EQ(in_place.collective->rows.size(), 25U);
  const CollectiveRow& last = in_place.collective->rows.back();
  EXPECT_EQ(last.bytes, 134217728);
  EXPECT_EQ(last.count, 33554432);
  EXPECT_NEAR(last.seconds, 1907.8e-6, 1e-12);
  EXPECT_NEAR(*last.algbw_bytes_per_second / 1e9, 70.35, 0.01);
  EXPECT_NEAR(*last.busbw_bytes_per_second / 1e9, 123.11, 0.01);
  EXPECT_EQ(last.calls_per_sample, 20);
  EXPECT_EQ(last.wrong, 0);
  // What nccl-tests prints itself is the mean of all its bus bandwidths.
  double sum = 0;
  for (const Record& record : records) {
    for (const CollectiveRow& row : record->collective->rows) sum += *row.busbw_bytes_per_second;
  }
  EXPECT_NEAR(sum / 50 / 1e9, 19.7866, 0.01);
}

TEST_F(Importing, RecordsReportWhereTheyAreFrom) {
  const std::string file = sample("nccl-tests-all_reduce_perf.txt");
  const auto records = import(request("nccl-tests", {file}));
  const ImportFacts& facts = *records[0]->provenance.imported;
  EXPECT_EQ(facts.format, "nccl-tests");
  EXPECT_EQ(facts.file, "nccl-tests-all_reduce_perf.txt");
  EXPECT_EQ(facts.xxh3.size(), 16U);
  EXPECT_EQ(facts.line, 1);
  EXPECT_EQ(facts.imported_by, "0.1.0");
  EXPECT_EQ(facts.imported_at.size(), 20U);
  EXPECT_EQ(records[0]->session, facts.xxh3);
}

TEST_F(Importing, OlderNcclTestsNameNoOperation) {
  std::string text = sample_text("nccl-tests-all_reduce_perf.txt");
  text.erase(0, text.find('\n') + 1);
  EXPECT_EQ(import_text("nccl-tests", text)[0]->collective->operation, "all_reduce");
  for (std::size_t at = 0; (at = text.find(" sum ", at)) != text.npos;) {
    text.replace(at, 5, "none ");
  }
  expect_parts(refusal("nccl-tests", text), {"add --set operation=all_reduce"});
}

TEST_F(Importing, DamagedRowsOfNcclTestsAreRefused) {
  const std::string text = sample_text("nccl-tests-all_reduce_perf.txt");
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string bad = text;
    bad.replace(bad.find(from), from.size(), to);
    return refusal("nccl-tests", bad);
  };
  expect_parts(broken("1916.4", "1916.4 7"), {"14 values, but there are 13 columns"});
  expect_parts(broken("1916.4", "916.4 "), {"contradict each other"});
  expect_parts(broken("1916.4", "nan   "), {"file:41: the time \"nan\" is not a positive number"});
  expect_parts(broken("1916.4", "-5    "), {"not a positive number"});
  expect_parts(refusal("nccl-tests", text.substr(0, text.find("1090.5") + 6)), {"values"});
  expect_parts(refusal("nccl-tests", text.substr(0, text.find("           8"))), {"no row"});
  // Cut between two rows it tells what it has, and that it was cut.
  const auto cut =
      import_text("nccl-tests", text.substr(0, text.find("\n", text.find("17.93")) + 1));
  expect_parts(cut[0]->collective->note, {"the output has no end"});
}

TEST_F(Importing, OsuReportsNoRanksButThoseOfTwo) {
  const std::string file = sample("osu_allreduce.txt");
  expect_parts(refusal(request("osu", {file})), {"osu_allreduce.txt:3: the file does not say how "
                                                 "many replicas there were; add --set gpus=N"});
  const auto records = import(request("osu", {file}, {"gpus=64", "nodes=4", "backend=mpi"}));
  ASSERT_EQ(records.size(), 3U);
  const RunRecord& all_reduce = *records[0];
  EXPECT_EQ(all_reduce.collective->operation, "all_reduce");
  EXPECT_EQ(all_reduce.layout.gpus, 64);
  EXPECT_EQ(all_reduce.layout.nodes, 4);
  const CollectiveRow& row = all_reduce.collective->rows[2];
  EXPECT_EQ(row.count, 262144);
  EXPECT_NEAR(row.seconds, 524.29e-6, 1e-12);
  EXPECT_NEAR(*row.seconds_min, 500e-6, 1e-12);
  EXPECT_EQ(row.calls_per_sample, 100);
  EXPECT_EQ(records[1]->collective->operation, "point_to_point");
  EXPECT_EQ(records[1]->collective->rows.size(), 2U);  // none of 0 bytes
  EXPECT_EQ(records[1]->layout.gpus, 2);               // as the test says
  EXPECT_FALSE(records[1]->layout.nodes.has_value());  // two ranks are not on four nodes
  EXPECT_EQ(records[2]->collective->operation, "stream");
  EXPECT_NEAR(records[2]->collective->rows[0].seconds, 1048576 / 20000e6, 1e-12);
}

TEST_F(Importing, OsuTestsThatAreNoTableOfTimesAreRefused) {
  expect_parts(refusal("osu",
                       "# OSU MPI Non-blocking Allreduce Latency Test v7\n# Size  "
                       "Overall(us)\n4   1\n"),
               {"file:2: the OSU test \"Non-blocking Allreduce Latency\" cannot be imported"});
  expect_parts(refusal("osu",
                       "# OSU MPI Allreduce Latency Test v7\n# Size  Avg Latency(us)\n4"
                       "\n",
                       {"gpus=2"}),
               {"file:3: the row has 1 values, but there are 2 columns"});
}

TEST_F(Importing, JobstatsGiveUtilizationMemoryAndTime) {
  const auto records = import(request("jobstats", {sample("jobstats.txt")}));
  ASSERT_EQ(records.size(), 1U);
  const RunRecord& job = *records[0];
  EXPECT_EQ(job.workload, "resnet50");
  EXPECT_EQ(job.timing->fit_seconds, 86400 + 9000);
  EXPECT_EQ(job.layout.gpus, 4);
  EXPECT_EQ(job.layout.nodes, 2);
  EXPECT_EQ(job.layout.cpus_per_replica, 8);
  EXPECT_NEAR(*job.utilization, 0.8, 1e-9);
  ASSERT_EQ(job.gpus.size(), 4U);
  EXPECT_EQ(job.gpus[3].memory_bytes, std::int64_t{20} << 30);
  EXPECT_EQ(job.provenance.started_at, "2026-11-03T13:05:00");
  EXPECT_EQ(job.provenance.allocation->job, "123456");
  EXPECT_EQ(job.provenance.allocation->partition, "gpu");
}

TEST_F(Importing, JobstatsJson) {
  const std::string node =
      R"({"cpus": 4, "gpu_utilization": {"0": 50.5}, "gpu_used_memory": {"0": 1024},
          "gpu_total_memory": {"0": 2048}, "total_time": 10, "used_memory": 5, "total_memory": 9})";
  const std::string text =
      R"({"gpus": 2, "total_time": 3600, "nodes": {"n1": )" + node + R"(, "n2": )" + node + "}}";
  const auto records = import_text("jobstats", text, {"workload=w"});
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0]->layout.gpus, 2);
  EXPECT_EQ(records[0]->workload, "w");
  EXPECT_EQ(records[0]->layout.cpus_per_replica, 4);
  EXPECT_NEAR(*records[0]->utilization, 0.505, 1e-9);
  EXPECT_EQ(records[0]->gpus[1].memory_bytes, 1024);
}

TEST_F(Importing, JobsThatFailedOrRun) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = sample_text("jobstats.txt");
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  expect_parts(refusal("jobstats", with("COMPLETED", "RUNNING")), {"the job has not ended"});
  expect_parts(refusal("jobstats", with("1-02:30:00", "soon")), {"\"soon\" is not a time"});
  expect_parts(refusal("jobstats", with("Run Time", "Walk Time")), {"no Run Time"});
  const std::string whole = sample_text("jobstats.txt");
  std::ofstream(folder_ / "cut") << whole.substr(0, whole.find("  GPU memory usage per node"));
  std::ofstream(folder_ / "cut2") << whole.substr(0, whole.find("      n2 (GPU 0)"));
  EXPECT_TRUE(
      Import(request("jobstats", {(folder_ / "cut").string()})).write(true)[0].notes.empty());
  EXPECT_EQ(Import(request("jobstats", {(folder_ / "cut2").string()})).write(true)[0].notes,
            (std::vector<std::string>{"job 123456 has 4 GPUs, but utilization and memory of 2",
                                      "job 123456: GPU utilization is the mean of 2 of 4 GPUs, as "
                                      "the others have none"}));
  const auto failed = import_text("jobstats", with("COMPLETED", "OUT_OF_MEMORY"));
  EXPECT_EQ(failed[0]->status, "failed");
  EXPECT_EQ(failed[0]->reason, "Slurm's state is OUT_OF_MEMORY");
}

TEST_F(Importing, MlperfGivesTheRun) {
  const std::string file = sample("mlperf-v1.1-HLS-1H-N2-resnet.txt");
  expect_parts(refusal(request("mlperf", {file})), {"add --set gpus=N"});
  const auto records = import(request("mlperf", {file}, {"gpus=8"}));
  ASSERT_EQ(records.size(), 1U);
  const RunRecord& run = *records[0];
  EXPECT_EQ(run.workload, "resnet");
  // run_stop - run_start, and the nine evaluations in it.
  EXPECT_NEAR(*run.quality.until->seconds_with_evaluation, 3366.605, 1e-3);
  EXPECT_NEAR(*run.timing->fit_seconds + *run.timing->evaluation_seconds, 3366.605, 2e-3);
  EXPECT_EQ(run.throughput->samples, 1281167.0 * 35);
  EXPECT_EQ(run.quality.epochs.size(), 9U);
  EXPECT_NEAR(*run.quality.test_accuracy, 0.75948, 1e-5);
  EXPECT_EQ(run.parameters.integer("global_batch"), 2048);
  EXPECT_EQ(run.parameters.text("optimizer"), "lars");
  EXPECT_EQ(run.plan.learning_rate, 9.0);
  EXPECT_EQ(run.provenance.started_at, "2021-11-10T10:35:43Z");
}

TEST_F(Importing, MlperfLoggedRatesAreTakenWithoutTheFirst) {
  std::string text = sample_text("mlperf-v1.1-HLS-1H-N2-resnet.txt");
  std::string rates;
  for (const char* rate : {"1", "200", "210", "205"}) {
    rates += std::string(R"(:::MLLOG {"namespace": "worker0", "time_ms": 1636540543398, "key": )") +
             R"("tracked_stats", "value": {"throughput": )" + rate + "}}\n";
  }
  text.insert(text.find(":::MLLOG", text.find("run_start")), rates);
  EXPECT_EQ(import_text("mlperf", text, {"gpus=8"})[0]->throughput->samples_per_second, 205);
}

TEST_F(Importing, MlperfLogsThatAreCutOrFailed) {
  std::string text = sample_text("mlperf-v1.1-HLS-1H-N2-resnet.txt");
  const std::string cut = text.substr(0, text.rfind(":::MLLOG"));
  expect_parts(refusal("mlperf", cut, {"gpus=8"}), {"the log has no run_stop: it is cut short"});
  expect_parts(refusal("mlperf", cut + ":::MLLOG {\"key\": \"run_st", {"gpus=8"}), {"not JSON"});
  expect_parts(refusal("mlperf", text + text, {"gpus=8"}), {"the log has a second run"});
  text.replace(text.find("\"success\""), 9, "\"aborted\"");
  const auto failed = import_text("mlperf", text, {"gpus=8"});
  EXPECT_EQ(failed[0]->status, "failed");
  expect_parts(failed[0]->reason, {"\"aborted\""});
}

TEST_F(Importing, GoogleBenchmarkNamesHoldParameters) {
  const auto row = [](const std::string& name, const std::string& more) {
    return R"({"name": ")" + name +
           R"(", "run_type": "iteration", "real_time": 2, "time_unit": "ms")" + more + "}";
  };
  const auto records =
      import_text("google-benchmark",
                  R"({"context": {"date": "2026-11-03"}, "benchmarks": [)" +
                      row("BM_step/gpus:4/real_time", R"(, "items_per_second": 100)") + "," +
                      R"({"name": "BM_bad", "error_occurred": true, "error_message": "no"}]})");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0]->status, "failed");
  EXPECT_EQ(records[0]->reason, "no");
  EXPECT_EQ(records[1]->workload, "BM_step/real_time");
  EXPECT_EQ(records[1]->layout.gpus, 4);
  EXPECT_NEAR(*records[1]->timing->fit_seconds, 2e-3, 1e-12);
  EXPECT_EQ(records[1]->throughput->samples_per_second, 100);
  EXPECT_EQ(records[1]->provenance.started_at, "2026-11-03");
  EXPECT_EQ(import(request("google-benchmark", {sample("google-benchmark.json")})).size(), 6U);
}

constexpr char kCsv[] =
    "\xEF\xBB\xBFGPUs, time (min) ,img/s,precision,remark\n1,10,100,fp32,\n2,5.5,\"180\",fp32,x\n";
const std::vector<std::string> kColumns = {"gpus=GPUs", "fit_seconds=time (min)*60",
                                           "samples_per_second=img/s"};

TEST_F(Importing, CsvColumnsAreMapped) {
  std::ofstream(folder_ / "file") << kCsv;
  const Import import(
      request("csv", {(folder_ / "file").string()}, {"workload=w", "hardware=A100"}, kColumns));
  EXPECT_EQ(import.write(false)[0].notes, std::vector<std::string>{"columns not imported: remark"});
  const auto records = load_store(import.study()).records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1]->layout.gpus, 2);
  EXPECT_EQ(records[1]->parameters.integer("gpus"), 2);
  EXPECT_EQ(records[1]->timing->fit_seconds, 330);
  EXPECT_EQ(records[1]->throughput->samples_per_second, 180);
  EXPECT_EQ(records[1]->parameters.text("precision"), "fp32");  // by the heading's name
  EXPECT_EQ(records[1]->provenance.hardware, "A100");
  EXPECT_EQ(records[1]->provenance.time_is, "column \"time (min)\"");
  EXPECT_EQ(records[1]->provenance.imported->line, 3);
}

TEST_F(Importing, CsvSuggestsNearNames) {
  const auto of = [&](std::vector<std::string> columns,
                      std::vector<std::string> set = {"workload=w"}) {
    return refusal("csv", kCsv, set, columns);
  };
  expect_parts(of({"gpu=GPUs"}), {"--column: records have no \"gpu\"; did you mean \"gpus\"?"});
  expect_parts(of({"gpus=GPU"}), {"file:1: there is no column \"GPU\"; did you mean \"GPUs\"?"});
  expect_parts(of({"gpus=GPUs"}), {"no column gives a time or a rate"});
  expect_parts(of(kColumns, {}), {"no column gives the workload"});
  expect_parts(of({"samples_per_second=img/s"}), {"no column gives gpus"});
  expect_parts(of(kColumns, {"workload=w", "fit_seconds=3"}),
               {"fit_seconds is a result, which only a file can give"});
  expect_parts(of(kColumns, {"workload=w", "nodes=many"}), {"\"many\" is not a number"});
  expect_parts(of({"gpus=GPUs", "gpus=remark"}), {"gpus is given twice"});
}

TEST_F(Importing, CsvColumnsOfOneNameAndTooManyRows) {
  expect_parts(
      refusal("csv", "gpus,rate,rate\n1,2,3\n", {"workload=w"}, {"samples_per_second=rate"}),
      {"two columns are named \"rate\"", "rename one"});
  std::string rows = "gpus,fit_seconds\n";
  for (int i = 1; i <= 20001; ++i) rows += "1," + std::to_string(i) + "\n";
  expect_parts(refusal("csv", rows, {"workload=w"}), {"gives 20001 records, more than 20000"});
}

TEST_F(Importing, CsvCellsThatAreNoNumbers) {
  const auto of = [&](const std::string& cell) {
    return refusal("csv", "gpus,fit_seconds\n1,2\n2," + cell + "\n", {"workload=w"});
  };
  expect_parts(of("nan"), {"file:3: \"nan\" is not a number"});
  expect_parts(of("-4"), {"file:3, key /timing/fit_seconds: cannot be negative"});
  expect_parts(of("4,5"), {"the row has 3 cells, but there are 2 columns"});
  expect_parts(of("\"4"), {"a quote is not closed"});
}

TEST_F(Importing, TablesOfOtherFormsAreCalledWhatTheyAre) {
  const auto of = [&](const std::string& text) { return refusal("csv", text, {"workload=w"}); };
  expect_parts(of("gpus;fit_seconds\n1;2\n"), {"separated by semicolons: write commas"});
  expect_parts(of("gpus\tfit_seconds\n1\t2\n"), {"separated by tabs: write commas"});
  expect_parts(of(std::string("\xff\xfeg\0p\0u\0s\0\n\0", 12)), {"UTF-16"});
}

TEST_F(Importing, TheSameFileAgainAddsNothing) {
  const std::string file = sample("nccl-tests-all_reduce_perf.txt");
  ASSERT_EQ(import(request("nccl-tests", {file, file})).size(), 2U);
  fs::copy_file(file, folder_ / "copy.txt");
  const Import again(request("nccl-tests", {(folder_ / "copy.txt").string()}));
  const auto written = again.write(false);
  for (const ImportedRecord& record : written[0].records) EXPECT_FALSE(record.is_new);
  EXPECT_EQ(load_store(again.study()).records.size(), 2U);
  // An interrupted import is completed.
  fs::remove(load_store(again.study()).records[0].where());
  EXPECT_EQ(import(request("nccl-tests", {file})).size(), 2U);
  EXPECT_EQ(load_store(again.study()).records.size(), 2U);
}

// A slip in an option is mended by the right import.
TEST_F(Importing, TheSameFileWithOtherOptionsSupersedes) {
  const auto with = [&](const std::string& set) {
    return import_text("csv", "gpus,fit_seconds\n1,2\n2,1\n", {"workload=" + set});
  };
  EXPECT_EQ(with("resnett").size(), 2U);
  const auto records = with("resnet");
  ASSERT_EQ(records.size(), 2U) << "of four records on disk";
  EXPECT_EQ(records[0]->workload, "resnet");
  EXPECT_EQ(with("resnet").size(), 2U);
  EXPECT_EQ(records[0]->provenance.imported->generation, 2);
  EXPECT_EQ(with("resnett")[0]->provenance.imported->generation, 3);
}

// As people write tables.
TEST_F(Importing, CellsForPeopleAreRead) {
  ImportRequest wanted =
      request("csv", {(folder_ / "t.csv").string()}, {"workload=w", "replicas_are=gpus"});
  wanted.columns = {"gpus=nodes*8", "nodes=nodes", "fit_seconds=time", "utilization=busy",
                    "tokens_per_second=tps*gpus"};
  const auto row = [&](const std::string& cells) {
    std::ofstream(folder_ / "t.csv") << "nodes,time,busy,tps\n" << cells << "\n";
    fs::remove_all(Import(wanted).study());
    return import(wanted)[0];
  };
  const Record record = row("2,19:32:17,74%,\"5,762\"");
  EXPECT_EQ(record->layout.gpus, 16);
  EXPECT_EQ(record->layout.nodes, 2);
  EXPECT_EQ(record->timing->fit_seconds, 70337);
  EXPECT_DOUBLE_EQ(*record->utilization, 0.74);
  EXPECT_EQ(record->throughput->samples_per_second, 5762 * 16);
  EXPECT_EQ(record->throughput->unit, "tokens");
  EXPECT_EQ(row("1,1-02:00:00.5,74 %,1234567")->timing->fit_seconds, 93600.5);
  for (const char* bad : {"2,12:30,74%,5", "2,1:75:00,74%,5", "2,9,74%,\"57,62\"", "2,9,7.4.1%,5",
                          "2,9,74%,\"0,125\""}) {
    expect_error(ErrorKind::input, {"is not a number", "t.csv:2"}, [&] { row(bad); });
  }
  wanted.columns[0] = "gpus=nodes*gpus";
  expect_error(ErrorKind::usage, {"only a rate can be times gpus"}, [&] { row("1,2,1%,1"); });
}

TEST_F(Importing, TheSameResultOfAnotherFileIsAnotherRepeat) {
  const std::string text = "gpus,fit_seconds\n1,2\n";
  import_text("csv", text, {"workload=w"});
  const auto records = import_text("csv", text + "\n", {"workload=w"});
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1]->repeat, 2);
}

TEST_F(Importing, ADryRunWritesNothing) {
  const Import import(request("jobstats", {sample("jobstats.txt")}));
  const auto files = import.write(true);
  EXPECT_EQ(files[0].records[0].file, import.study() / "resnet50,gpus=4,nodes=2/1.1.json");
  EXPECT_FALSE(fs::exists(import.study()));
}

TEST_F(Importing, OneBadFileOfSeveralStopsAll) {
  expect_parts(refusal(request("nccl-tests", {sample("nccl-tests-all_reduce_perf.txt"),
                                              sample("osu_allreduce.txt")})),
               {"osu_allreduce.txt: the file is not output of nccl-tests or rccl-tests, but "
                "looks like output of the OSU Micro-Benchmarks; try: paceline import osu"});
}

// The name of a sample begins with that of its format. It is of no other, but may look like a
// table.
TEST_F(Importing, EachFormatHasASampleAndItsPlaceInTheDocs) {
  const std::string docs = read_text(fs::path(PACELINE_SOURCE_DIR) / "docs/import.md");
  std::map<std::string, std::string> samples;
  for (const auto& entry : fs::directory_iterator(sample(""))) {
    samples[entry.path().filename().string()] = read_text(entry.path());
  }
  ASSERT_GE(import_formats().size(), 7U);
  std::size_t imported = 0;
  for (const ImportFormat& format : import_formats()) {
    const std::string name = format.name;
    expect_parts(docs, {"\n- `" + name + "` reads ", "\n### " + name + "\n"});
    std::size_t own = 0;
    for (const auto& [file, text] : samples) {
      const bool is_own = file.starts_with(name);
      if (!format.is_table || is_own) {
        EXPECT_EQ(format.is_one(text), is_own) << file << " " << name;
      }
      if (!is_own) continue;
      ++own;
      fs::remove_all(folder_.path() / "s");
      EXPECT_EQ(refusal(request(name, {sample(file)}, {"gpus=2"})), "") << file;
      if (format.is_table) continue;
      expect_parts(refusal(request("csv", {sample(file)})), {"try: paceline import " + name});
    }
    EXPECT_GE(own, 1U) << name << " has no sample in tests/data/import";
    imported += own;
  }
  EXPECT_EQ(imported, samples.size()) << "a sample is of no format";
}

TEST_F(Importing, FormatsAreDistinguished) {
  expect_parts(refusal("osu", "hello"), {"see docs/import.md"});
  expect_parts(refusal("osu", " \n"), {"the file is empty"});
  expect_parts(refusal("kineto", ""), {"the file is empty"});
  expect_parts(refusal("kineto", "# nThread 1\n"), {"try: paceline import nccl-tests"});
  expect_parts(refusal("osu", "a,b\n1,2\n"), {"looks like a table of comma-separated values"});
  expect_parts(refusal(request("ncl-tests", {})), {"did you mean \"nccl-tests\"?"});
}

TEST_F(Importing, ByteOrderMarksAreSkipped) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(import_text("kineto", mark + sample_text("kineto.json")).size(), 1U);
  EXPECT_EQ(refusal("google-benchmark", mark + sample_text("google-benchmark.json")), "");
}

TEST_F(Importing, NamesNeverLeaveTheFolder) {
  ImportRequest bad = request("jobstats", {sample("jobstats.txt")});
  for (const char* study : {"../x", "a/b", ".", "", "a\nb", ".git"}) {
    bad.study = study;
    SCOPED_TRACE(study);
    expect_parts(refusal(bad), {"cannot be a folder's"});
  }
  std::string text = sample_text("jobstats.txt");
  text.replace(text.find("resnet50"), 8, "../../\x1b[31m" + std::string(400, 'x'));
  const auto records = import_text("jobstats", text);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(fs::path(records[0].where()).parent_path().parent_path(), folder_.path() / "s");
  EXPECT_EQ(records[0]->workload.find('\x1b'), std::string::npos);
}

TEST_F(Importing, LongLines) {
  expect_parts(refusal("nccl-tests", "# nThread 1 minBytes 8\n#  size count time algbw busbw\n " +
                                         std::string(10 << 20, '1') + " 1 1 1 1\n"),
               {"no row of results"});
  expect_parts(refusal("mlperf", ":::MLLOG " + std::string(10 << 20, '[')), {"not JSON"});
}

TEST_F(Importing, AFilesLineCountsNewAndKnownRecords) {
  ImportedFile file{"links.txt",
                    "nccl-tests",
                    {{"a.json", 3, true}, {"b.json", 4, false}},
                    {"1 row is left out", "warning: #wrong"}};
  EXPECT_EQ(file.text(false),
            "links.txt: 1 record imported from nccl-tests; 1 record imported before, skipped\n"
            "  1 row is left out\n");
  file.records.pop_back();
  EXPECT_EQ(file.text(true),
            "links.txt: 1 record would be imported from nccl-tests\n  1 row is left out\n");
  const Json json = file.json();
  EXPECT_EQ(json["records"][0]["line"], 3);
  EXPECT_EQ(json["records"][0]["new"], true);
  EXPECT_EQ(json["notes"].size(), 2U);
}

}  // namespace
}  // namespace paceline
