// Outputs of other tools as people have them: behind labels, of processes that ran apart, with
// results that their tool itself calls wrong, in other encodings.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "engine/core/text.h"
#include "results/import/import.h"
#include "results/import/lines.h"
#include "results/store.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

class ImportOutput : public ::testing::Test {
 protected:
  // The records, in the order of their folders; `notes_` are those of the import.
  std::vector<Record> import(const std::string& format, const std::string& text,
                             const std::vector<std::string>& set = {}) {
    std::ofstream(folder_ / "file", std::ios::binary) << text;
    const std::string study = "s" + std::to_string(++studies_);
    const Import made(
        {format, {(folder_ / "file").string()}, study, folder_.path(), set, {}, "0.1.0"});
    notes_ = made.write(false).front().notes;
    return load_store(folder_ / study).records;
  }
  std::string refusal(const std::string& format, const std::string& text,
                      const std::vector<std::string>& set = {}) {
    return catch_error(ErrorKind::input, [&] { import(format, text, set); });
  }
  bool is_noted(const std::string& part) const {
    return join(notes_, "\n").find(part) != std::string::npos;
  }

  Scratch folder_;
  std::vector<std::string> notes_;
  int studies_ = 0;
};

std::string rank_lines(int ranks, const std::string& host, int pid) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    text += "#  Rank " + std::to_string(rank) + " Group  0 Pid " + std::to_string(pid + rank) +
            " on " + host + " device " + std::to_string(rank) + " [0000:0a:00] NVIDIA A100\n";
  }
  return text;
}

std::string options(const std::string& most = "2048") {
  return "# Collective test starting: all_gather_perf\n"
         "# nThread 1 nGpus 1 minBytes 1024 maxBytes " +
         most + " step: 2(factor) warmup iters: 5 iters: 10 agg iters: 1 validation: 1 graph: 0\n";
}

std::string headings(const std::string& time = "time", const std::string& check = "#wrong") {
  const std::string side = " " + time + " algbw busbw " + check;
  return "#       size         count      type   redop    root" + side + side + "\n";
}

// Both sides take `microseconds`, which must make a rate of two digits.
std::string row(int bytes, double microseconds, const std::string& out = "0",
                const std::string& in = "0") {
  char rate[32];
  snprintf(rate, sizeof rate, "%.2f", bytes / microseconds / 1e3);
  const std::string side = " " + std::to_string(microseconds) + " " + rate + " " + rate + " ";
  return std::to_string(bytes) + " " + std::to_string(bytes / 4) + " float none -1" + side + out +
         side + in + "\n";
}

constexpr char kEnd[] = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n";

std::string whole_output(int ranks, const std::string& host, int pid) {
  return options() + rank_lines(ranks, host, pid) + headings() + row(1024, 4) + row(2048, 5) + kEnd;
}

std::string labelled(const std::string& text, const std::string& label) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    result += label + text.substr(at, end - at);
    at = end;
  }
  return result;
}

TEST_F(ImportOutput, LabelsOfLaunchersAreTakenOff) {
  const std::string plain = whole_output(2, "n1", 10);
  for (const char* label : {"3: ", " 12: ", "[1,0]<stdout>:", "[prterun-n1-77@1,3]<stdout>: ",
                            "node-07: ", "2026-05-02T07:08:09.5Z ", "2026-05-02 07:08:09,123 ",
                            "[pod/train-0/main] ", "[default0]:", "Nov  5 07:08:09 ", "train-1  | ",
                            "2026-05-02T07:08:09+02:00 [1,0]<stdout>:"}) {
    const auto records = import("nccl-tests", "a launcher's banner\n" + labelled(plain, label));
    ASSERT_EQ(records.size(), 2U) << label;
    EXPECT_EQ(records[0]->collective->rows.size(), 2U) << label;
    EXPECT_EQ(records[0]->provenance.imported->line, 2) << label;
    EXPECT_TRUE(is_noted("labels before its lines")) << label;
  }
}

TEST_F(ImportOutput, LinesThatOnlyLookLabelledStay) {
  for (const std::string text :
       {"gpus,samples_per_second\n1,100\n", "{\n\"a\": [1]\n}\n",
        "[\n{\"ts\": 1},\n{\"ts\": 2}\n]\n", "0: one line of several\nothers\nhave\nnone\n",
        "2026-05-02 07:08:09,5,6\n2026-05-02 07:08:10,6,7\n"}) {
    std::vector<std::string> notes;
    EXPECT_EQ(without_labels(text, notes), text);
    EXPECT_TRUE(notes.empty());
  }
}

TEST_F(ImportOutput, ProcessesThatRanApartAreRefused) {
  const std::string cure = "build nccl-tests with MPI=1";
  // Their headings mix, or only their rows, or each had one GPU.
  const std::string mixed = options() + options() + rank_lines(2, "n1", 10) +
                            rank_lines(2, "n2", 20) + headings() + headings() + row(1024, 4) +
                            row(1024, 5) + row(2048, 5) + row(2048, 6) + kEnd + kEnd;
  expect_parts(refusal("nccl-tests", mixed), {cure});
  const std::string rows = options() + rank_lines(2, "n1", 10) + headings() + options() +
                           rank_lines(2, "n2", 20) + headings() + row(1024, 4) + row(1024, 5) +
                           row(2048, 5) + kEnd + row(2048, 6) + kEnd;
  expect_parts(refusal("nccl-tests", rows), {cure});
  const std::string alone = whole_output(1, "n1", 10) + whole_output(1, "n1", 11);
  expect_parts(refusal("nccl-tests", alone), {cure});
  // One after the other they are two tests, and one rank may be meant.
  EXPECT_EQ(import("nccl-tests", whole_output(2, "n1", 10) + whole_output(2, "n2", 20)).size(), 4U);
  EXPECT_EQ(import("nccl-tests", whole_output(1, "n1", 10)).size(), 2U);
  EXPECT_TRUE(is_noted("is of 1 rank"));
}

TEST_F(ImportOutput, RowsThatAreMissingAreNoted) {
  const std::string begin = options("4096") + rank_lines(2, "n1", 10) + headings() + row(1024, 4);
  const auto records = import(
      "nccl-tests", begin + "n1:10 [0] NCCL INFO comm " + row(2048, 5) + row(4096, 6) + kEnd);
  EXPECT_TRUE(is_noted("has 2 of 3 rows"));
  expect_parts(records[0]->collective->note, {"2 of 3 rows are there"});
  import("nccl-tests", begin + row(2048, 5) + row(4096, 6) + kEnd);
  EXPECT_TRUE(notes_.empty());
  import("osu",
         "# OSU MPI Allreduce Latency Test v7.4\n# Size  Avg Latency(us)\n4  2.5\nwarn 8  2.6\n16  "
         "3\n",
         {"gpus=2"});
  EXPECT_TRUE(is_noted("between 4 and 16 bytes"));
}

TEST_F(ImportOutput, TimesOfAnotherKindAreRefused) {
  const std::string text =
      options() + rank_lines(2, "n1", 10) + headings("cputime") + row(1024, 4) + kEnd;
  expect_parts(refusal("nccl-tests", text), {"CPU time (-C 1)"});
}

// The time that is printed is 10 us; the rate, 4.19 GB/s, is that of the call.
TEST_F(ImportOutput, CpuTimesAreReplacedByThoseOfTheBandwidth) {
  const auto records =
      import("nccl-tests",
             options() + rank_lines(2, "n1", 10) + headings("cputime") + row(1024, 4) +
                 "1048576 262144 float none -1 10.00 4.19 2.10 0 10.00 4.20 2.10 0\n" + kEnd);
  ASSERT_EQ(records.size(), 2U);
  const CollectiveFacts& out_of_place = *records[1]->collective;
  ASSERT_EQ(out_of_place.rows.size(), 1U);
  EXPECT_NEAR(out_of_place.rows[0].seconds, 1048576 / 4.19e9, 1e-10);
  expect_parts(out_of_place.note, {"times from bandwidths"});
  EXPECT_TRUE(is_noted("printed CPU times (-C 1): it is imported without 2 times"));
}

TEST_F(ImportOutput, ColumnsBehindTheOthersAreLeftOut) {
  const auto with_each_row = [](const std::string& heading, const std::string& values) {
    std::string head = headings(), text;
    head.insert(head.size() - 1, heading);
    for (std::string each : {row(1024, 4), row(2048, 5)}) {
      each.insert(each.size() - 1, values);
      text += each;
    }
    return options() + rank_lines(2, "n1", 10) + head + text + kEnd;
  };
  for (const auto& [heading, values] :
       {std::pair{"    timestamp", "  2026-05-02 07:08:09"},
        {"", "  RING LL 4"},
        {" algo proto nchannels timestamp", " 2026-05-02 07:08:09  RING LL 4"}}) {
    const auto records = import("nccl-tests", with_each_row(heading, values));
    ASSERT_EQ(records.size(), 2U) << heading << values;
    ASSERT_EQ(records[0]->collective->rows.size(), 2U) << heading << values;
    EXPECT_NEAR(records[0]->collective->rows[1].seconds, 5e-6, 1e-12);
    EXPECT_EQ(records[0]->collective->rows[1].wrong, 0);
    EXPECT_EQ(is_noted("behind the last heading, which are left out: RING LL 4"),
              std::string(heading).empty());
  }
  // Only one row has them: text of another process.
  expect_parts(refusal("nccl-tests", with_each_row("", "") + row(4096, 6) + "4096 1024 RING"),
               {"the row has 3 values, but there are 13 columns; take other text out"});
}

TEST_F(ImportOutput, ColumnsWithinASideAreFoundByName) {
  const std::string text = options("1024") + rank_lines(2, "n1", 10) +
                           "#                              in-place\n"
                           "#  size count type redop root  time hipevt algbw busbw #wrong\n"
                           "1024 512 bfloat16 none -1  5.71  2.78  0.18  0.09  7\n" +
                           kEnd;
  const auto records = import("nccl-tests", text);
  ASSERT_EQ(records.size(), 1U);
  const CollectiveFacts& facts = *records[0]->collective;
  EXPECT_EQ(facts.placement, "in place");
  EXPECT_NEAR(facts.rows[0].seconds, 5.71e-6, 1e-12);
  EXPECT_EQ(facts.rows[0].wrong, 7);
}

TEST_F(ImportOutput, CyclesAreSamplesOfASize) {
  const std::string begin = options() + rank_lines(2, "n1", 10) + headings();
  const std::string cycles = row(1024, 4) + row(2048, 9) + row(1024, 6) + row(2048, 8, "0", "3") +
                             row(1024, 5) + row(2048, 7);
  const auto records = import("nccl-tests", begin + cycles + kEnd);
  ASSERT_EQ(records.size(), 2U);
  const CollectiveFacts& in_place = *records[0]->collective;
  ASSERT_EQ(in_place.rows.size(), 2U);
  const CollectiveRow &small = in_place.rows[0], &large = in_place.rows[1];
  EXPECT_EQ(small.bytes, 1024);
  EXPECT_EQ(small.samples, 3);
  EXPECT_NEAR(small.seconds, 5e-6, 1e-12);
  EXPECT_NEAR(*small.seconds_min, 4e-6, 1e-12);
  EXPECT_NEAR(*small.seconds_p95, 5.9e-6, 1e-12);
  EXPECT_NEAR(*small.algbw_bytes_per_second, 1024 / 5e-6, 1);
  EXPECT_NEAR(*small.busbw_bytes_per_second, 512 / 5e-6, 1);
  EXPECT_EQ(small.wrong, 0);
  EXPECT_EQ(large.wrong, 3);
  EXPECT_EQ(large.first_wrong, "2048 bytes: #wrong 3");
  expect_parts(in_place.note, {"median of 3 cycles, each the mean of 10 calls"});
  EXPECT_FALSE(is_noted("rows; others are missing"));
  import("nccl-tests", begin + cycles.substr(0, cycles.rfind("2048 ")) + kEnd);
  EXPECT_TRUE(is_noted("has 5 of 6 rows; others are missing"));
}

TEST_F(ImportOutput, TypesAreNoCycles) {
  std::string half = row(1024, 8);
  half.replace(half.find("float"), 5, "half");
  const auto records = import("nccl-tests", options("1024") + rank_lines(2, "n1", 10) + headings() +
                                                row(1024, 4) + half + kEnd);
  const CollectiveFacts& facts = *records[0]->collective;
  ASSERT_EQ(facts.rows.size(), 2U);
  EXPECT_EQ(facts.rows[0].label, "float none");
  EXPECT_EQ(facts.rows[1].label, "half none");
  EXPECT_NEAR(facts.rows[1].seconds, 8e-6, 1e-12);
  EXPECT_EQ(facts.dtype, "");
}

// What -J writes, in one line.
std::string json_output(const std::string& time = "time", const std::string& wrong = "0.000000") {
  const std::string side = R"({")" + time + R"(":45.271000,"alg_bw":23.162201,"bus_bw":40.533852,)";
  const auto device = [](const std::string& rank, const std::string& host) {
    return R"({"rank":)" + rank + R"(,"group":0,"pid":77,"hostname":")" + host +
           R"(","device":0,"device_hex":"0009:01:00","device_info":"NVIDIA GH200 120GB"})";
  };
  return R"({"version":2,"start_time":"2026-05-02 07:08:09","args":[".\/build\/all_reduce_perf","-J"],)"
         R"("env":["HOME=\/home\/a"],"nccl_version":22803,"config":{"nthreads":1,"ngpus":4,)"
         R"("minimum_bytes":1048576,"maximum_bytes":2097152,"step_factor":2,"warmup_iters":1,)"
         R"("iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,"devices":[)" +
         device("0", "n1") + "," + device("4", "n2") +
         R"(]},"results":[{"size":1048576,"count":262144,"type":"float","redop":"sum",)"
         R"("root":"    -1","out_of_place":)" +
         side + R"("nwrong":0.000000},"in_place":)" + side + R"("nwrong":)" + wrong +
         R"(},"actual_iterations":20,"experiment_name":""}],"out_of_bounds":{"count":0,"okay":"true"},)"
         R"("average_bus_bandwidth":{"bandwidth":40.5,"okay":"unchecked"},"errors":[],)"
         R"("end_time":"2026-05-02 07:08:19"})";
}

TEST_F(ImportOutput, NcclTestsAsJson) {
  const auto records = import("nccl-tests", json_output("time", "2.000000"));
  ASSERT_EQ(records.size(), 2U);
  const RunRecord& in_place = *records[0];
  EXPECT_EQ(in_place.collective->operation, "all_reduce");
  EXPECT_EQ(in_place.collective->placement, "in place");
  EXPECT_EQ(in_place.collective->dtype, "f32");
  // Of the four GPUs of a process, only the first is listed.
  EXPECT_EQ(in_place.layout.gpus, 8);
  EXPECT_EQ(in_place.layout.nodes, 2);
  EXPECT_EQ(in_place.layout.ntasks, 2);
  EXPECT_EQ(in_place.provenance.hardware, "NVIDIA GH200 120GB");
  EXPECT_EQ(in_place.provenance.started_at, "2026-05-02T07:08:09");
  ASSERT_EQ(in_place.collective->rows.size(), 1U);
  const CollectiveRow& row = in_place.collective->rows[0];
  EXPECT_EQ(row.bytes, 1048576);
  EXPECT_NEAR(row.seconds, 45.271e-6, 1e-12);
  EXPECT_NEAR(*row.busbw_bytes_per_second / 1e9, 40.53, 0.01);
  EXPECT_EQ(row.calls_per_sample, 20);
  EXPECT_EQ(row.wrong, 2);
  EXPECT_EQ(records[1]->collective->rows[0].wrong, 0);
  EXPECT_TRUE(is_noted("warning: all_reduce in place: the data check of 1 of 1 sizes failed"));
  EXPECT_TRUE(is_noted("has 1 of 2 rows"));
  // CPU times, of which the bandwidth here has digits enough.
  const auto cpu = import("nccl-tests", json_output("cpu_time"));
  EXPECT_NEAR(cpu[0]->collective->rows[0].seconds, 1048576 / 23.162201e9, 1e-12);
}

TEST_F(ImportOutput, DamagedJsonOfNcclTestsIsRefused) {
  const std::string text = json_output();
  expect_parts(refusal("nccl-tests", text.substr(0, text.find("average"))), {"not JSON"});
  std::string not_finite = text;
  not_finite.replace(not_finite.find("45.271000"), 9, "\"nan\"");
  expect_parts(refusal("nccl-tests", not_finite),
               {"file:1: the time \"nan\" is not a positive number"});
  expect_parts(refusal("nccl-tests", json_output("duration")), {"no row of results"});
  expect_parts(refusal("csv", text), {"try: paceline import nccl-tests"});
}

TEST_F(ImportOutput, StrictImportsRefuseWarnings) {
  std::ofstream(folder_ / "file") << options() + rank_lines(2, "n1", 10) + headings() +
                                         row(1024, 4) + row(2048, 5, "9") + kEnd;
  ImportRequest request = {"nccl-tests", {(folder_ / "file").string()}, "s", folder_.path(), {}, {},
                           "0.1.0"};
  EXPECT_EQ(Import(request).write(true).size(), 1U);
  request.strict = true;
  expect_error(ErrorKind::input,
               {"file: all_gather out of place: the data check of 1 of 2 sizes failed",
                "leave out --strict"},
               [&] { const Import made(request); });
}

TEST_F(ImportOutput, FailedDataChecksAreLoud) {
  const std::string begin = options() + rank_lines(2, "n1", 10) + headings() + row(1024, 4);
  const auto wrong = import("nccl-tests", begin + row(2048, 5, "0", "2.5e+03") +
                                              "# Out of bounds values : 1 FAILED\n" + kEnd);
  ASSERT_EQ(wrong.size(), 2U);
  const CollectiveFacts& in_place = *wrong[0]->collective;
  EXPECT_EQ(in_place.rows[1].wrong, 2500);
  EXPECT_EQ(in_place.rows[1].first_wrong, "2048 bytes: #wrong 2.5e+03");
  expect_parts(in_place.note, {"check of 1 of 2 sizes failed"});
  // The other side is part of the same verdict.
  expect_parts(wrong[1]->collective->note, {"1 FAILED"});
  EXPECT_TRUE(is_noted("warning: all_gather in place: the data check of 1 of 2 sizes failed"));
  const auto old =
      import("nccl-tests", options() + rank_lines(2, "n1", 10) + headings("time", "error") +
                               row(1024, 4, "0", "nan") + row(2048, 5, "1e-07", "0e+00") + kEnd);
  EXPECT_EQ(old[0]->collective->rows[0].first_wrong, "1024 bytes: error nan");
  EXPECT_EQ(old[1]->collective->rows[1].first_wrong, "");
}

TEST_F(ImportOutput, FailedValidationsOfOsuAreLoud) {
  const std::string text =
      "# OSU MPI Broadcast Latency Test v7.3\n# Size  Avg Latency(us)  Validation\n"
      "8  2.5  Pass\n16  2.6  Fail\n";
  const auto records = import("osu", text, {"gpus=2"});
  EXPECT_EQ(records[0]->collective->rows[0].wrong, 0);
  EXPECT_EQ(records[0]->collective->rows[1].first_wrong, "16 bytes: Fail");
  EXPECT_TRUE(is_noted("check of 1 of 2 sizes failed (16 bytes: Fail)"));
  import("osu", text.substr(0, text.find("16")) + "DATA VALIDATION ERROR: exited\n", {"gpus=2"});
  EXPECT_TRUE(is_noted("the output says \"DATA VALIDATION ERROR"));
}

TEST_F(ImportOutput, OtherEncodingsAreRefused) {
  const std::string table = "gpus,samples_per_second,workload\n1,9,ma\xdf\n1,8,ma\xdf\x65\n";
  expect_parts(refusal("csv", table), {"file:2: the text is not UTF-8 (byte 0xDF)"});
  expect_parts(refusal("jobstats", "Slurm Job Statistics\nJob Name: caf\xe9\n"), {"not UTF-8"});
  expect_parts(refusal("csv", std::string("\xff\xfeg\0p\0", 6)), {"UTF-16"});
  expect_parts(refusal("csv", "gpus;workload\n1;a\n"), {"semicolons"});
  expect_parts(refusal("csv", "gpus,gpus,workload,fit_seconds\n1,1,a,1\n"), {"two columns"});
}

std::string mlperf_entry(const std::string& key, const std::string& value, int time,
                         const std::string& more = "") {
  return ":::MLLOG {\"namespace\": \"\", \"time_ms\": " + std::to_string(time) + ", \"key\": \"" +
         key + "\", \"value\": " + value + ", \"metadata\": {" + more + "}}";
}

TEST_F(ImportOutput, MlperfLogsWithOtherText) {
  const std::string start = mlperf_entry("run_start", "null", 1000),
                    stop = mlperf_entry("run_stop", "null", 9000, "\"status\": \"success\"");
  const auto fit = [&](const std::string& text) {
    return *import("mlperf", text, {"gpus=2"})[0]->timing->fit_seconds;
  };
  EXPECT_EQ(fit("\x1b[32m" + start + "\x1b[0m\n" + stop + "\x1b[0m\n"), 8);
  EXPECT_EQ(fit(start + " [rank 3] done\n" + stop + stop + "\n"), 8);
  EXPECT_EQ(fit(start + "\n" + mlperf_entry("grad_norm", "-Infinity", 2000) + "\n" + stop + "\n"),
            8);
  EXPECT_TRUE(is_noted("grad_norm at line 2 has a value that is not finite"));
  expect_parts(refusal("mlperf", start + "\n:::MLLOG {\"key\": \"a\n" + stop, {"gpus=2"}),
               {"file:2: the entry is not JSON: it does not end"});
}

TEST_F(ImportOutput, ArgumentsOfBenchmarksNamedLikeParameters) {
  const auto names = [&](const std::string& name) {
    const auto records =
        import("google-benchmark", R"({"benchmarks": [{"name": ")" + name +
                                       R"(", "real_time": 2, "time_unit": "ms"}]})");
    return records[0]->workload + " " + std::to_string(records[0]->layout.gpus);
  };
  EXPECT_EQ(names("BM_a/backend:7"), "BM_a/backend:7 1");
  EXPECT_EQ(names("BM_a/optimizer:1/gpus:-4"), "BM_a/optimizer:1/gpus:-4 1");
  EXPECT_EQ(names("BM_a/steps:0.5/gpus:2"), "BM_a/steps:0.5 2");
  EXPECT_EQ(names("BM_a/epochs:1/steps:5/gpus:2"), "BM_a 2");
  EXPECT_EQ(names("BM_a/gpus:16777217"), "BM_a/gpus:16777217 1");
  EXPECT_EQ(names("BM_a/nodes:16777217/gpus:2"), "BM_a/nodes:16777217 2");
}

TEST_F(ImportOutput, JobstatsCountGpusWithoutUtilization) {
  const std::string node = R"("n1": {"cpus": 8, "used_memory": 1)";
  const auto none =
      import("jobstats", R"({"gpus": 3, "total_time": 60, "nodes": {)" + node + "}}}");
  EXPECT_EQ(none[0]->layout.gpus, 3);
  EXPECT_FALSE(none[0]->utilization);
  const auto some = import("jobstats", R"({"gpus": 3, "total_time": 60, "nodes": {)" + node +
                                           R"(, "gpu_utilization": {"0": 50, "1": 70}}}})");
  EXPECT_EQ(some[0]->layout.gpus, 3);
  EXPECT_NEAR(*some[0]->utilization, 0.6, 1e-9);
  EXPECT_TRUE(is_noted("mean of 2 of 3 GPUs"));
  expect_parts(some[0]->provenance.time_is, {"mean of 2 of 3 GPUs"});
}

TEST_F(ImportOutput, JobstatsWithNullsAndWithoutMemory) {
  const auto records =
      import("jobstats",
             R"({"gpus": null, "total_time": 60, "nodes": {"n1": {"cpus": null,)"
             R"( "gpu_utilization": {"0": 90, "1": null}, "gpu_used_memory": null}, "n2": null}})");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0]->layout.gpus, 2);
  ASSERT_EQ(records[0]->gpus.size(), 1U);
  EXPECT_NEAR(*records[0]->utilization, 0.9, 1e-9);
  EXPECT_TRUE(is_noted("mean of 1 of 2 GPUs"));
  // A GPU whose memory is known stays.
  const auto memory = import(
      "jobstats", R"({"gpus": 2, "total_time": 60, "nodes": {"n1": {"cpus": 8, "gpu_utilization":)"
                  R"( {"0": 90, "1": null}, "gpu_used_memory": {"0": null, "1": 1024}}}})");
  ASSERT_EQ(memory[0]->gpus.size(), 2U);
  EXPECT_EQ(memory[0]->gpus[1].memory_bytes, 1024);
}

TEST_F(ImportOutput, ColumnsTellSystemsApart) {
  const std::string table = "gpus,NVLink,fit_seconds\n1,on,19.56\n2,on,13.54\n2,off,30.02\n";
  std::ofstream(folder_ / "file") << table;
  ImportRequest request = {"csv",          {(folder_ / "file").string()}, "systems", folder_.path(),
                           {"workload=w"}, {"hardware=NVLink"},           "0.1.0"};
  for (const char* card : {"", "A100"}) {
    const std::string before = *card == '\0' ? "" : "A100, ";
    if (*card != '\0') request.set.push_back(std::string("hardware=") + card);
    request.study = std::string("systems") + card;
    EXPECT_TRUE(Import(request).write(false)[0].notes.empty());
    std::vector<std::string> systems;
    for (const Record& record : load_store(folder_ / request.study).records) {
      systems.push_back(record->provenance.hardware);
    }
    EXPECT_EQ(systems, (std::vector<std::string>{before + "NVLink on", before + "NVLink on",
                                                 before + "NVLink off"}));
  }
  const std::string note = "add --column \"hardware=NVLink\"";
  import("csv", table, {"workload=w"});
  EXPECT_TRUE(is_noted(note));
  import("csv", "gpus,NVLink,fit_seconds\n1,off,19.56\n2,on,13.54\n", {"workload=w"});
  EXPECT_FALSE(is_noted(note));  // no rows are repeats
  import("csv", "gpus,run,fit_seconds\n2,1,13\n2,2,14\n", {"workload=w"});
  EXPECT_FALSE(is_noted("repeats of each other"));
}

TEST_F(ImportOutput, LabelsOfLogCollectorsAreTakenOff) {
  for (const char* label :
       {"2026-05-02T07:08:09.123456789Z stdout F ", "2026-05-02T07:08:09.5Z 01O ",
        "Nov  5 07:08:09 n1 bench[33]: ", "2026-05-02T07:08:09+02:00 n1 a/b[3]: ",
        "launcher-x7 main ", "job launcher-x7 main "}) {
    const auto records = import("nccl-tests", labelled(whole_output(2, "n1", 10), label));
    ASSERT_EQ(records.size(), 2U) << label;
    EXPECT_EQ(records[0]->collective->rows.size(), 2U) << label;
  }
  std::vector<std::string> notes;
  const std::string table = "system,time\nA100 SXM #1,4\nA100 SXM #2,5\nA100 SXM #3,6\n";
  EXPECT_EQ(without_labels(table, notes), table);
}

TEST_F(ImportOutput, WhatTheFileStatesStays) {
  const auto table = import("csv", "gpus,precision,fit_seconds,workload\n1,fp32,2,x\n2,,1,x\n",
                            {"gpus=9", "precision=bf16"});
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0]->parameters.text("precision"), "fp32");
  EXPECT_EQ(table[0]->layout.gpus, 1);
  EXPECT_EQ(table[1]->parameters.text("precision"), "bf16");
  EXPECT_EQ(table[1]->layout.gpus, 2);
  EXPECT_TRUE(is_noted("gpus is 1 where the file says so, not 9"));
  EXPECT_TRUE(is_noted("precision is fp32 where the file says so, not bf16"));
  EXPECT_EQ(notes_.size(), 3U);
  const auto benchmark =
      import("google-benchmark", R"({"benchmarks": [{"name": "a/epochs:4", "real_time": 2}]})",
             {"epochs=5", "workload=b"});
  EXPECT_EQ(benchmark[0]->parameters.integer("epochs"), 4);
  EXPECT_EQ(benchmark[0]->workload, "b");
  EXPECT_TRUE(is_noted("epochs is 4 where the file says so, not 5"));
  const auto nccl = import("nccl-tests", whole_output(2, "n1", 10), {"operation=all_reduce"});
  EXPECT_EQ(nccl[0]->collective->operation, "all_gather");
  EXPECT_TRUE(is_noted("operation is all_gather where the file says so, not all_reduce"));
}

TEST_F(ImportOutput, WholeNumbersOfPandas) {
  const std::string table = "gpus,fit_seconds,hardware,workload\n1.0,2.50,1.0,x\n2.,2.0,,x\n";
  const auto records = import("csv", table);
  EXPECT_EQ(records[0]->layout.gpus, 1);
  EXPECT_EQ(records[0]->timing->fit_seconds, 2.5);
  EXPECT_EQ(records[0]->provenance.hardware, "hardware 1.0");
  EXPECT_EQ(records[1]->layout.gpus, 2);
  EXPECT_NE(refusal("csv", "gpus,fit_seconds,workload\n1.5,2,x\n"), "");
}

TEST_F(ImportOutput, EqualRepetitionsAreRuns) {
  std::string rows;
  for (const char* index : {"0", "1", "2"}) {
    rows += std::string(rows.empty() ? "" : ", ") +
            R"({"name": "a", "real_time": 9, "repetition_index": )" + index + "}";
  }
  std::ofstream(folder_ / "file") << "{\"benchmarks\": [" + rows + "]}";
  const std::string file = (folder_ / "file").string();
  const ImportRequest request = {
      "google-benchmark", {file, file}, "equal", folder_.path(), {}, {}, "0.1.0"};
  const auto count_new = [&] {
    std::vector<int> counts;
    for (const ImportedFile& each : Import(request).write(false)) {
      counts.push_back(
          static_cast<int>(std::ranges::count(each.records, true, &ImportedRecord::is_new)));
    }
    return counts;
  };
  EXPECT_EQ(count_new(), (std::vector<int>{3, 0}));
  EXPECT_EQ(count_new(), (std::vector<int>{0, 0}));
  std::filesystem::remove(load_store(folder_ / "equal").records[1].where());
  EXPECT_EQ(count_new(), (std::vector<int>{1, 0}));
  EXPECT_EQ(load_store(folder_ / "equal").records.size(), 3U);
}

TEST_F(ImportOutput, OsuProcessesThatRanApartAreRefused) {
  const std::string title = "# OSU MPI Allreduce Latency Test v7.4\n",
                    head = "# Size  Avg Latency(us)\n", rows = "4  2\n8  3\n";
  expect_parts(
      refusal("osu", title + title + head + head + "4  2\n4  2.1\n8  3\n8  3\n", {"gpus=4"}),
      {"file:6: the size 4 is there twice"});
  const std::string one = title + "# Datatype: MPI_FLOAT.\n" + head + rows,
                    other = "# Datatype: MPI_INT.\n" + head + rows;
  const auto types = import("osu", one + other, {"gpus=4"});
  ASSERT_EQ(types.size(), 2U);
  EXPECT_EQ(types[0]->collective->dtype, "f32");
  EXPECT_EQ(types[1]->collective->dtype, "i32");
  EXPECT_EQ(types[1]->collective->rows.size(), 2U);
}

// busbw is 1.5 times algbw, as of an all_reduce on 4 ranks.
std::string reduction(int ranks) {
  std::string text = options("1048576") + rank_lines(ranks, "n1", 10) + headings() +
                     "1048576 262144 float sum -1 50.0 20.97 31.46 0 50.0 20.97 31.46 0\n" + kEnd;
  return text.substr(text.find('\n') + 1);
}

TEST_F(ImportOutput, RanksThatContradictTheBandwidthsAreRefused) {
  const std::vector<std::string> set = {"operation=all_reduce"};
  EXPECT_EQ(import("nccl-tests", reduction(4), set).size(), 2U);
  expect_parts(refusal("nccl-tests", reduction(8), set),
               {"file:1: busbw is 1.50 times algbw, but 1.75 times it is all_reduce on the 8 "
                "ranks listed"});
  expect_parts(refusal("nccl-tests", reduction(4), {"operation=broadcast"}), {"but 1.00 times"});
  std::string lacking = whole_output(3, "n1", 10);
  lacking.erase(lacking.find("#  Rank 1"), lacking.find("#  Rank 2") - lacking.find("#  Rank 1"));
  expect_parts(refusal("nccl-tests", lacking), {"the test lists a rank 2, but only 2 ranks"});
}

TEST_F(ImportOutput, GroupsOfRanksAreCounted) {
  std::string text = reduction(8);
  for (const char* rank : {"4", "5", "6", "7"}) {
    text.replace(text.find(std::string("Rank ") + rank) + 14, 1, "1");
  }
  const auto records = import("nccl-tests", text);
  EXPECT_EQ(records[0]->collective->operation, "all_reduce");
  EXPECT_EQ(records[0]->layout.gpus, 8);
  EXPECT_NEAR(*records[0]->collective->rows[0].busbw_bytes_per_second, 1.5 * 1048576 / 50e-6, 1);
  expect_parts(records[0]->collective->note, {"2 groups of 4 ranks"});
}

TEST_F(ImportOutput, TestsThatAreCutAreLoud) {
  const std::string begin = options("4096") + rank_lines(2, "n1", 10) + headings() + row(1024, 4);
  const auto cut = import("nccl-tests", begin + row(2048, 5));
  EXPECT_TRUE(is_noted("warning: the test at line 1 has no end, so it failed or was cut; do not"));
  EXPECT_TRUE(is_noted("warning: the test at line 1 has 2 of 3 rows"));
  import("nccl-tests", begin + "slurmstepd: error: STEP 1.0 CANCELLED\n");
  EXPECT_TRUE(is_noted("has no end, so it failed or was cut (\"slurmstepd: error: STEP 1.0"));
  const std::string failure = "n1: Test NCCL failure common.cu:1005 'unhandled'\n";
  const auto failed = import("nccl-tests", begin + row(2048, 5) + failure + row(4096, 6) + kEnd);
  EXPECT_TRUE(is_noted("warning: all_gather in place: the output says \"n1: Test NCCL failure"));
  expect_parts(failed[0]->collective->note, {"Test NCCL failure"});
  import("nccl-tests", whole_output(2, "n1", 10) + options("8192") + failure);
  EXPECT_TRUE(is_noted("warning: the test at line 10 has no row of results (\"n1: Test NCCL"));
  import("nccl-tests",
         options("1024") + rank_lines(2, "n1", 10) + headings() + row(1024, 4, "0", "-1") + kEnd);
  EXPECT_TRUE(is_noted("the data check of 1 of 1 sizes failed (1024 bytes: #wrong -1)"));
}

TEST_F(ImportOutput, JobstatsThatContradictThemselves) {
  const auto summary = [](const std::string& gpus) {
    return R"({"gpus": )" + gpus + R"(, "total_time": 60, "nodes": {"n1": {"cpus": 8,)" +
           R"( "used_memory": 1, "gpu_utilization": {"0": 50, "1": 70}}}})";
  };
  expect_parts(refusal("jobstats", summary("2.5")), {"the number of GPUs, 2.5, is not whole"});
  EXPECT_EQ(import("jobstats", summary("1"))[0]->layout.gpus, 1);
  EXPECT_TRUE(is_noted("warning: job has 1 GPUs, but utilization and memory of 2"));
}

TEST_F(ImportOutput, TheHistoryOfGithubActionBenchmark) {
  const auto entry = [](const char* commit, const char* date, double value) {
    return fmt::format(
        R"({{"commit": {{"id": "{}"}}, "date": {}, "tool": "customSmallerIsBetter", "benches": [)"
        R"({{"name": "sum", "value": {}, "unit": "ms"}}, {{"name": "size", "value": 3, "unit": "kB"}},)"
        R"({{"name": "rate", "value": 5, "unit": "ops/sec"}}]}})",
        commit, date, value);
  };
  const std::string text = "window.BENCHMARK_DATA = {\"entries\": {\"Rust\": [" +
                           entry("abc1", "1700000000000", 20) + "," +
                           entry("abc2", "1700086400000", 30) + "]}}\n";
  const auto records = import("github-action", text);
  ASSERT_EQ(records.size(), 4U);
  std::map<std::string, double> times;
  for (const Record& record : records) {
    if (record->timing->fit_seconds) times[record->session] = *record->timing->fit_seconds;
  }
  EXPECT_EQ(times, (std::map<std::string, double>{{"2023-11-14T22:13:20Z abc1", 0.02},
                                                  {"2023-11-15T22:13:20Z abc2", 0.03}}));
  expect_parts(refusal("github-action", text.substr(0, 80)), {"cut off"});
}

}  // namespace
}  // namespace paceline
