// import as a user has it: a file of another tool becomes a study that report shows.
#include <nlohmann/json.hpp>

#include "engine/core/text.h"
#include "results/store.h"
#include "tests/integration/cli/paceline.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

class CliImport : public Cli {
 protected:
  static std::string sample(const std::string& name) {
    return shell_quote(std::string(PACELINE_SOURCE_DIR) + "/tests/data/import/" + name);
  }
};

TEST_F(CliImport, ACollectiveIsATableOfItsOwn) {
  const std::string import =
      "import nccl-tests " + sample("nccl-tests-all_reduce_perf.txt") + " --study links";
  expect_parts(succeed(import + " --dry-run").out, {"2 records would be imported from nccl-tests"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "results"));
  expect_parts(succeed(import).out, {"2 records imported from nccl-tests\nsee: paceline report "
                                     "results/local/links\n"});
  expect_parts(paceline(import).out, {"2 records imported before, skipped"});
  const Ran report = succeed("report results/local/links");
  expect_parts(report.out, {"all-reduce, 8 ranks in 8 tasks on nid005471, nid005487, backend NCCL,",
                            "  - out of place; mean of 20 calls\n",
                            "134217728    33554432  f32   1907.80   70.35  123.12       0"});
  expect_no_parts(report.out, {"p95"});
  succeed("report results/local/links --only kind=imported --format csv");
  EXPECT_EQ(paceline("report results/local/links --only kind=collective").out, report.out);
  succeed("archive results/local/links --out l.tar.gz");
  expect_parts(paceline("merge l.tar.gz other").out, {"2 were added"});
}

TEST_F(CliImport, TracesOfRanksArePhasesOfOneRun) {
  const std::string traces = shell_quote(std::string(PACELINE_SOURCE_DIR) + "/tests/data/kineto/") +
                             "ddp-gloo-rank*.json.gz";
  expect_parts(succeed("import kineto " + traces + " --study t --set batch_per_replica=16").out,
               {" and 1 more: 1 record imported from PyTorch's profiler\n",
                "  rank 1: 23.6 ms of the CPU: 22.7 % computing, 10.6 % idle"});
  expect_no_parts(succeed("explain results/local/t").out, {"have no phases of a step"});
  const Ran report = succeed("report results/local/t --format json");
  EXPECT_GT(nlohmann::json::parse(report.out)["tables"][0]["rows"][0]["exposed_communication"], 0)
      << report.out;
  succeed("predict results/local/t --gpus 4");
  expect_parts(paceline("import kineto " + traces + " --study t --set batch_per_replica=16").out,
               {"1 record imported before, skipped"});
  std::ofstream(folder() / "cut.json") << "{\"traceEvents\": [{\"ph\": \"X\",";
  expect_refused("import kineto cut.json --study s", 65, {"cut.json: ", "is cut off"});
  expect_refused("import kineto cut.txt --study s", 65, {"cut.txt: ", "cannot be read"});
}

// Never in a row with measured runs, nor their base.
TEST_F(CliImport, ImportedRowsAreLabelledBesideMeasuredOnes) {
  for (const int gpus : {1, 2}) {
    write_record_file(folder() / "s" / ("gpus=" + std::to_string(gpus)) / "1.1.json",
                      sample_record({.gpus = gpus, .fit_seconds = 10.0 / gpus}), "");
  }
  std::ofstream(folder() / "t.csv")
      << "gpus,ntasks,fit_seconds,samples\n1,1,8,120000\n2,2,5,120000\n";
  const Ran ran = succeed(
      "import csv t.csv --study s --results . --set workload=mnist-cnn --set precision=fp32 "
      "--set batch_per_replica=64 --set epochs=2 --set learning_rate=0.001 --set backend=mpi "
      "--set cpus_per_task=1 --set nodes=1 --set replicas_are=cores --json");
  EXPECT_EQ(nlohmann::json::parse(ran.out).at("files").at(0).at("records").size(), 2U) << ran.out;
  const Ran report = succeed("report s --format json");
  const auto tables = nlohmann::json::parse(report.out);
  int imported = 0, measured = 0;
  for (const auto& table : tables.contains("tables") ? tables["tables"] : nlohmann::json{tables}) {
    for (const auto& row : table.at("rows")) {
      const bool is_imported = contains(row.dump(), "\"imported");
      ++(is_imported ? imported : measured);
      // 8 s and 5 s; 10 s and 5 s.
      if (row.at("gpus") != 2) continue;
      EXPECT_NEAR(row.at("speed_up").get<double>(), is_imported ? 1.6 : 2, 1e-6) << row.dump();
    }
  }
  EXPECT_EQ(imported, 2) << report.out;
  EXPECT_EQ(measured, 2) << report.out;
  succeed("explain s");
}

TEST_F(CliImport, WhatAToolCallsWrongIsLoud) {
  std::ofstream(folder() / "o.txt") << "1: # OSU MPI Allgather Latency Test v7.2\n"
                                       "1: # Size  Avg Latency(us)  Validation\n"
                                       "1: 32  2.5  Pass\n1: 64  2.75  Fail\n";
  const Ran import = succeed("import osu o.txt --study o --set gpus=4");
  expect_parts(import.err, {"o.txt: warning: all_gather: the data check of 1 of 2 sizes failed "
                            "(64 bytes: Fail); do not rely on these times"});
  expect_parts(import.out, {"labels before its lines are taken off, as \"1: \""});
  expect_refused(
      "import osu o.txt --study strict --set gpus=4 --strict", 65,
      {"o.txt: all_gather: the data check of 1 of 2 sizes failed", "leave out --strict"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "results/local/strict"));
  const Ran report = paceline("report results/local/o");
  expect_parts(report.out, {"; the data check of 1 of 2 sizes failed", "wrong: 64 bytes: Fail"});
}

TEST_F(CliImport, BadInputIsOneLine) {
  std::ofstream(folder() / "t.csv") << "a\x1b[31m,b\n1,2\n";
  expect_refused("import nccl-test x --study s", 64, {"did you mean \"nccl-tests\"?"});
  expect_refused("import osu missing.txt --study s", 65, {"missing.txt"});
  expect_refused("import osu " + sample("jobstats.txt") + " --study s", 65,
                 {"looks like a report of jobstats; try: paceline import jobstats"});
  expect_refused("import jobstats " + sample("jobstats.txt") + " --study ../s", 64,
                 {"cannot be a folder's"});
  expect_refused("import jobstats " + sample("jobstats.txt") + " --study s --column a=b", 64,
                 {"only a csv table has columns"});
  expect_refused("import csv t.csv --study s --set gpus=1", 65, {"no column gives the workload"});
  expect_refused("import csv t.csv --study s --set gpu=1", 64, {"did you mean \"gpus\"?"});
  expect_refused("import csv t.csv --study s --set gpus", 64, {"is not KEY=VALUE"});
  expect_refused("import osu " + sample("osu_allreduce.txt") + " --study s", 65,
                 {"add --set gpus=N"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "results"));
}

}  // namespace
}  // namespace paceline
