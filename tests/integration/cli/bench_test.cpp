// `paceline bench allreduce` as a user types it.
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/core/text.h"
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const std::string kShort = "bench allreduce --iterations 2 --rounds 2 --quiet ";

class CliBench : public Cli {};

TEST_F(CliBench, TableHasTheFieldsColumns) {
  const Ran ran = succeed(kShort + "--gpus 2 --backends mirrored --sizes 4,4K,1M");
  expect_parts(ran.out, {"#wrong", "algbw", "busbw", "(GB/s)", "memcpy", "1048576"});
  expect_no_parts(ran.out, {"MPI_Allreduce", "\033"});
  EXPECT_FALSE(contains(ran.out, "one after another")) << "no buckets here";
}

TEST_F(CliBench, BackendsStandSideBySide) {
  std::vector<std::string> built;
  for (const char* backend : {"ring", "mpi", "gloo", "mirrored"}) {
    if (find_name("backend", backend).built) built.push_back(backend);
  }
  const std::string options = kShort + "--gpus 2 --sizes 64,64K --backends " + join(built, ",");
  const Ran json = succeed(options + " --json --record out");
  const auto records = nlohmann::json::parse(json.out).at("collectives");
  ASSERT_EQ(records.size(), built.size());
  for (std::size_t i = 0; i < built.size(); ++i) {
    EXPECT_EQ(records[i].at("provenance").at("backend_requested"), built[i]);
    const std::string command = records[i].at("provenance").at("command");
    expect_parts(command, {"--backends " + join(built, ",")});
    EXPECT_FALSE(contains(command, "paceline-bench")) << "a round's own: " << command;
    const auto& block = records[i].at("collective");
    EXPECT_EQ(block.at("rounds"), 2);
    ASSERT_EQ(block.at("rows").size(), 2U);
    for (const auto& row : block.at("rows")) {
      EXPECT_EQ(row.at("wrong"), 0);
      const double algbw = row.at("algbw_bytes_per_second"),
                   busbw = row.at("busbw_bytes_per_second");
      EXPECT_NEAR(algbw, row.at("bytes").get<double>() / row.at("seconds").get<double>(),
                  algbw * 1e-5);
      EXPECT_NEAR(busbw, algbw, algbw * 1e-5);  // 2 (n-1)/n is 1 for two
      EXPECT_GT(row.at("memcpy_seconds"), 0);
      EXPECT_GT(row.at("reused_seconds"), 0);
    }
  }
  // A column each, of the records, too.
  const Ran report = succeed("report out");
  for (const std::string& backend : built) {
    expect_parts(report.out, {" " + backend + " ", "  - " + backend + ": "});
  }
  expect_parts(report.out, {"memcpy"});
}

TEST_F(CliBench, ABusyMachineIsNoticed) {
  const Ran ran = expect_success(
      shell("for i in $(seq $((2 * $(nproc)))); do bash -c 'while :; do :; done' & done\n"
            "sleep 0.3\n"
            "paceline bench allreduce --gpus 2 --backends ring,mirrored --sizes 1M --rounds 2 "
            "--seconds 1 --quiet --record out\ncode=$?\nkill $(jobs -p)\nexit $code"));
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (auto at = ran.busy.find(part); at != std::string::npos; at = ran.busy.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("other processes use the CPUs of this run: "), 1U) << ran.busy;
  EXPECT_EQ(count("the machine was busy: "), 1U) << ran.busy;
  for (const char* record : {"out/backend=ring/1.1.json", "out/backend=mirrored/1.1.json"}) {
    const auto load =
        nlohmann::json::parse(std::ifstream(folder() / record)).at("provenance").at("machine_load");
    EXPECT_EQ(load.at("busy"), true) << load;
    EXPECT_GT(load.at("other_cpu_share").get<double>(), 0.2) << load;
  }
}

TEST_F(CliBench, BackendThatWasNamedAndDoesNotServeIsAnError) {
  expect_refused(kShort + "--gpus 2 --cpus-per-task 64 --sizes 64 --backends ring,mirrored", 64,
                 {"backend ring: ", "CPU"});
}

TEST_F(CliBench, InterruptionEndsByItsSignal) {
  // Its first ranks' parent watches for signals.
  const Ran ran = shell(
      "(until pgrep -P $$ -x paceline > /dev/null; do sleep 0.1; done; kill -INT $$) & "
      "exec '" PACELINE_BINARY
      "' bench allreduce --gpus 2 --backends ring,mirrored --sizes 4M --rounds 200 "
      "--record out");
  EXPECT_EQ(ran.code, 130) << ran.err;
  expect_parts(ran.err, {"stopped by Interrupt; nothing is recorded"});
  EXPECT_EQ(paceline("report out").code, 65);
}

TEST_F(CliBench, MoreSecondsAreMoreCalls) {
  const auto samples = [&](const char* seconds) {
    const Ran ran = succeed(
        "bench allreduce --gpus 2 --backends mirrored --sizes 128M --rounds 1 "
        "--no-baselines --quiet --json --seconds " +
        std::string(seconds));
    return nlohmann::json::parse(ran.out).at("collective").at("rows")[0].at("samples").get<int>();
  };
  EXPECT_GT(samples("1.5"), samples("0.02"));
}

TEST_F(CliBench, RecordsOfSeveralBackendsNeedAFolder) {
  std::ofstream(folder() / "taken") << "a file";
  expect_refused(kShort + "--gpus 2 --sizes 64 --backends ring,mirrored --record taken", 65,
                 {"taken"});
}

// A launcher's ranks are there once.
TEST_F(CliBench, LaunchedRanksMeasureOneBackend) {
  const Ran ran = shell("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 paceline " + kShort +
                        "--gpus 2 --sizes 64 --backends ring,gloo");
  EXPECT_EQ(ran.code, 64);
  expect_parts(ran.err, {"measure one backend a call"});
}

TEST_F(CliBench, BucketsOfAWorkload) {
  const Ran ran =
      succeed(kShort + "--gpus 2 --backends mirrored --like mnist-cnn --json --no-baselines");
  const auto rows = nlohmann::json::parse(ran.out).at("collective").at("rows");
  std::size_t sum = 0;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) sum += rows[i].at("count").get<std::size_t>();
  EXPECT_EQ(rows.back().at("label"), "all at once");
  EXPECT_EQ(rows.back().at("count"), sum);
  EXPECT_GE(sum, 347146U);  // the network's parameters, each tensor padded
  EXPECT_FALSE(rows[0].contains("memcpy_seconds"));
  expect_parts(
      paceline(kShort + "--gpus 2 --backends mirrored --like mnist-cnn --no-baselines").out,
      {"  - buckets one after another: "});
}

TEST_F(CliBench, RecordIsWrittenOnceAndReported) {
  const std::string command = kShort + "--gpus 2 --backends mirrored --sizes 1K --record a.json";
  succeed(command);
  const Ran report = succeed("report a.json");
  expect_parts(report.out, {"backend mirrored", "1024"});
  EXPECT_EQ(paceline("report a.json --format csv").out.find("bytes,count"), 0U);
  expect_refused(command, 65, {"the file exists already", "a.json"});
  expect_refused(
      kShort + "--gpus 2 --backends mirrored --oversubscribe --sizes 1K --record no/a.json", 65,
      {"cannot be written", "no/a.json"});
}

TEST_F(CliBench, RanksThatWouldMakeOtherCallsAreRefused) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "this build has no mpi";
  if (!mpirun_starts_two_programs()) GTEST_SKIP() << "this mpirun cannot start two programs";
  const std::string program = "'" PACELINE_BINARY
                              "' bench allreduce --gpus 2 --backends mpi "
                              "--cpus-per-task 1 --sizes 1K --iterations 2 --rounds ";
  const Ran ran = shell(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 "
      "mpirun -np 1 " +
      program + "1 : -np 1 " + program + "2");
  EXPECT_EQ(ran.code, 73) << ran.err;
  expect_parts(ran.err, {"rounds: rank 0 1, rank 1 2"});
}

TEST_F(CliBench, ReportsOfRecords) {
  succeed(kShort + "--gpus 1 --backends self --sizes 1K --record a.json");
  const Ran out = paceline("report a.json --out report");
  EXPECT_TRUE(contains(out.out, "collectives.csv")) << out.out << out.err;
  EXPECT_EQ(file_text(folder() / "report/collectives.csv"),
            paceline("report a.json --format csv").out);
  succeed("report a.json --only backend=self");
  expect_refused("report a.json --only backend=mpi", 64, {"--only"});
  expect_refused("report a.json --base best", 64, {"collectives only", "--base"});
  expect_refused("report a.json --columns cost", 64, {"collectives only", "--columns"});
  expect_refused("report a.json --pool", 64, {"collectives only", "--pool"});
  const std::string published = " '" PACELINE_SOURCE_DIR "/results/reference/cassava-resnet50' ";
  const Ran both = paceline("report a.json" + published + "--no-plots");
  EXPECT_TRUE(contains(both.out, "busbw") && contains(both.out, "efficiency")) << both.err;
  expect_refused("report a.json" + published + "--format csv", 64, {"--format"});
  EXPECT_EQ(paceline("report a.json" + published + "--only kind=collective --format csv").out,
            paceline("report a.json --format csv").out);
}

TEST_F(CliBench, RecordsThatAreBrokenAreNamedByKey) {
  succeed(kShort + "--gpus 1 --backends self --sizes 1K --record a.json");
  const auto whole = nlohmann::json::parse(file_text(folder() / "a.json"));
  const auto refused = [&](const char* pointer, const nlohmann::json& value) {
    auto json = whole;
    json[nlohmann::json::json_pointer(pointer)] = value;
    std::ofstream(folder() / "b.json") << json;
    expect_refused("report b.json", 65, {pointer});
  };
  refused("/provenance", nullptr);
  refused("/provenance/hosts", {1});
  refused("/provenance/backend_requested", 3);
  refused("/collective/rows/0/wrong", "many");
  auto nulls = whole;
  nulls["collective"]["library"] = nullptr;
  nulls["collective"]["rows"][0]["label"] = nullptr;
  nulls["provenance"]["hosts"] = {"node10", "node1", "node10"};
  std::ofstream(folder() / "c.json") << nulls;
  expect_parts(succeed("report c.json").out, {"on node10, node1, backend self"});
}

TEST_F(CliBench, BadInput) {
  expect_refused("bench", 64, {"name a command: input, allreduce", "paceline bench --help"});
  expect_refused("bench allreduc", 64, {"allreduc"});
  expect_refused(kShort + "--backends nul", 64, {"unknown backend \"nul\"", "\"null\"?"});
  expect_refused(kShort + "--backends null", 64, {"does not reduce"});
  expect_refused(kShort + "--gpus 2 --backends mpi+bf15", 64, {"unknown wrapper", "\"bf16\"?"});
  expect_refused(kShort + "--gpus 2 --backends mpi/mirrored", 64, {"cannot be stacked"});
  expect_refused(kShort + "--sizes 4K,no", 64, {"\"no\" is not a size", "--sizes"});
  expect_refused(kShort + "--sizes 0", 64, {"\"0\" is not a size"});
  expect_refused(kShort + "--min-bytes 1M --max-bytes 1K", 64, {"--min-bytes 1M is above"});
  expect_refused(kShort + "--sizes 1024G", 64, {"of memory per node", "measure smaller sizes"});
  expect_refused(kShort + "--dtype f23", 64, {"\"f23\" cannot be summed", "\"f32\"?"});
  expect_refused(kShort + "--like mnist-cn", 64, {"unknown workload", "\"mnist-cnn\"?"});
  expect_refused(kShort + "--step-factor 1", 64, {"--step-factor: 1 is less than 2"});
  expect_refused(kShort + "--step-factor 4611686018427387904", 64, {"give 2 to 1024"});
  expect_refused(kShort + "--sizes 4K --step-factor 8", 64, {"--step-factor", "excludes"});
  expect_refused(kShort + "--sizes 1099511627776G", 64, {"more than any memory"});
  expect_refused(kShort + "--max-bytes 8589934592G", 64, {"more than any memory"});
  expect_refused("bench allreduce --iterations -1", 64, {"--iterations: -1 is less than 0"});
  expect_refused("bench allreduce --warmup -1", 64, {"--warmup: -1 is less than 0"});
  expect_refused("bench allreduce --rounds 1000000000000", 64,
                 {"is more than 1000; give 1 to 1000"});
  expect_refused("bench allreduce --rounds 0", 64, {"--rounds: 0 is less than 1"});
  expect_refused("bench allreduce", 64, {"an all-reduce needs more than one replica", "--gpus 2"});
  expect_refused(kShort + "--gpus 64 --backends mirrored --cpus-per-task 64", 64, {"CPU"});
}

}  // namespace
}  // namespace paceline
