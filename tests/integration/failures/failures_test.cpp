// Real runs whose ranks are killed, stopped or slowed: what is said, how soon, and what is left.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "engine/failure/flight_reader.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/process_rank.h"
#include "engine/launch/program.h"
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
inline namespace testing {
namespace {

using namespace std::chrono_literals;

// Where a rank is when it is killed; one step in 32 is an epoch's last, behind which ranks meet.
const std::string kPlace = "step \\d+, (bucket \\d+|barrier|all-gather)";

constexpr char kRun[] =
    "PACELINE_STATUS_DIR=$PWD/status paceline train mnist-mlp --input synthetic --train-limit 4096 "
    "--evaluate none --oversubscribe --quiet ";

class Failures : public Cli {
 protected:
  static void need(const std::string& backend) {
    if (!find_name("backend", backend).built) GTEST_SKIP() << backend << " is not built";
  }

  std::filesystem::path status() const { return folder() / "status"; }

  std::future<Ran> start(const std::string& line) const {
    return std::async(std::launch::async, [this, line] { return shell(line); });
  }

  // The processes of `ranks`, once all replicas are beyond `step`. Empty if the run ended before.
  std::vector<int> wait_for_step(std::future<Ran>& run, std::size_t ranks, std::size_t replicas,
                                 std::uint64_t step) const {
    while (run.wait_for(20ms) != std::future_status::ready) {
      const auto flights = read_flights(status());
      const auto statuses = read_statuses(status());
      const bool there = flights.size() == replicas && statuses.size() == ranks &&
                         std::all_of(flights.begin(), flights.end(),
                                     [step](const Flight& flight) { return flight.step > step; });
      if (!there) continue;
      std::vector<int> pids;
      for (const RankStatus& one : statuses) pids.push_back(one.pid);
      return pids;
    }
    ADD_FAILURE() << "ended too early: " << run.get().err;
    return {};
  }

  // Launchers of the user's may end before the ranks that they have killed.
  static void expect_gone(const std::vector<int>& pids, std::chrono::seconds grace = 0s) {
    const auto until = std::chrono::steady_clock::now() + grace;
    for (const int pid : pids) {
      while (state_of_process(pid) != ProcessState::none &&
             std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
      }
      EXPECT_EQ(state_of_process(pid), ProcessState::none) << pid;
    }
  }

  static std::string last_line(std::string text) {
    text.erase(text.find_last_not_of('\n') + 1);
    return text.substr(text.find_last_of('\n') + 1);
  }

  static void expect_match(const std::string& line, const std::string& pattern) {
    EXPECT_TRUE(std::regex_search(line, std::regex(pattern))) << line;
  }

  nlohmann::json to_json(const std::string& name) const {
    return nlohmann::json::parse(std::ifstream(folder() / name));
  }
};

class Started : public Failures, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string command(const std::string& more) const {
    return kRun + std::string("--gpus 2 --cpus-per-task 1 --backend ") + GetParam() + " " + more;
  }
};

TEST_P(Started, AKilledRankIsNamedWithItsStep) {
  need(GetParam());
  auto run = start(command("--epochs 100000 --record run.json"));
  const auto pids = wait_for_step(run, 2, 2, 20);
  ASSERT_EQ(pids.size(), 2U);
  kill(pids[1], SIGKILL);
  const Ran ran = run.get();
  EXPECT_EQ(ran.code, 71);
  const std::string line = last_line(ran.err);
  expect_match(line, "^paceline: rank 1 on " + host_name() + " died of signal 9 \\(Killed\\) at " +
                         kPlace + "; the others wait (there|at " + kPlace +
                         "); see the kernel's log");
  expect_gone(pids);
  EXPECT_FALSE(std::filesystem::exists(folder() / "run.json"));
  const auto record = to_json("run.failed.json");
  EXPECT_EQ(record["status"], "failed");
  EXPECT_EQ("paceline: " + record["reason"].get<std::string>(), line);

  const Ran mortem = paceline("doctor --post-mortem status");
  EXPECT_EQ(mortem.code, 71);
  EXPECT_EQ("paceline: " + last_line(mortem.out), line);
  const Ran json = paceline("doctor --post-mortem status --json");
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ("paceline: " + parsed["line"].get<std::string>(), line);
  EXPECT_EQ(parsed["replicas"].size(), 2U);
  EXPECT_EQ(parsed["replicas"][1]["collectives"].empty(), false);
}

TEST_P(Started, AStoppedRankIsWarnedOfAndNamed) {
  need(GetParam());
  auto run = start(command("--epochs 100000 --warn-seconds 0.5 --abort-seconds 2"));
  const auto pids = wait_for_step(run, 2, 2, 20);
  ASSERT_EQ(pids.size(), 2U);
  kill(pids[1], SIGSTOP);
  const Ran ran = run.get();
  EXPECT_EQ(ran.code, 72);
  expect_match(ran.err, "warning: rank 0 has waited .* at " + kPlace + " for rank 1\n");
  const std::string line = last_line(ran.err);
  expect_match(line, "^paceline: rank 1 on " + host_name() + " stopped at " + kPlace +
                         "; the others wait (there|at " + kPlace + "); see what it was doing");
  expect_gone(pids);
  const Ran mortem = paceline("doctor --post-mortem status");
  EXPECT_EQ(mortem.code, 72);
  EXPECT_EQ("paceline: " + last_line(mortem.out), line);
}

INSTANTIATE_TEST_SUITE_P(Backends, Started, ::testing::Values("ring", "mpi"),
                         [](const auto& backend) { return std::string(backend.param); });

// One rank computes as an old processor does. Without updates: those of another instruction set
// round otherwise, and replicas must not differ.
TEST_F(Failures, ASlowRankIsInTheRecord) {
  need("ring");
  if (!contains(file_text("/proc/cpuinfo"), "avx2")) GTEST_SKIP() << "no rank can be made slower";
  const Ran ran = expect_success(shell(
      "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1\n"
      "rank() { RANK=$1 LOCAL_RANK=$1 paceline train mnist-mlp --input synthetic --train-limit "
      "4096 --evaluate none --oversubscribe --gpus 2 --cpus-per-task 1 --backend ring --epochs "
      "1000 "
      "--batch-per-replica 512 --steps 120 --no-update --record run.json; }\n"
      "export PACELINE_PORTS=29500-29599\n"
      "(export PACELINE_ISA=baseline ONEDNN_MAX_CPU_ISA=SSE41; rank 1) &\n"
      "rank 0; code=$?; wait; exit $code"));
  const auto straggler = to_json("run.json")["straggler"];
  ASSERT_TRUE(straggler.is_object());
  EXPECT_EQ(straggler["rank"], 1);
  EXPECT_EQ(straggler["host"], host_name());
  EXPECT_GT(straggler["share_of_step"].get<double>(), 0.03);
  EXPECT_TRUE(contains(ran.err, "rank 1 on " + host_name() + " delayed the others by")) << ran.err;
}

// Nobody of ours is there to tell: replicas that are threads, killed together.
TEST_F(Failures, APostMortemNamesReplicasThatVanished) {
  auto run =
      start(std::string(kRun) + "--gpus 2 --cpus-per-task 2 --backend mirrored --epochs 100000");
  const auto pids = wait_for_step(run, 1, 2, 20);
  ASSERT_EQ(pids.size(), 1U);
  kill(pids[0], SIGKILL);
  run.get();
  const Ran mortem = paceline("doctor --post-mortem status");
  EXPECT_EQ(mortem.code, 71);
  expect_match(last_line(mortem.out),
               "^ranks 0, 1 on " + host_name() + " ended without reporting an error at " + kPlace);
}

// Under a launcher of the user's, with replicas inside of each task.
TEST_F(Failures, APostMortemNamesATaskUnderMpirun) {
  need("mirrored/mpi");
  auto run = start(
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_rmaps_base_oversubscribe=1 PACELINE_STATUS_DIR=$PWD/status\n"
      "mpirun -n 2 '" PACELINE_BINARY
      "' train mnist-mlp --input synthetic --train-limit 4096 --evaluate none --oversubscribe "
      "--quiet --gpus 4 --nodes 2 --cpus-per-task 2 --backend mirrored/mpi --epochs 100000 "
      "--abort-seconds 3");
  const auto pids = wait_for_step(run, 2, 4, 20);
  ASSERT_EQ(pids.size(), 2U);
  kill(pids[1], SIGKILL);
  EXPECT_NE(run.get().code, 0);
  expect_gone(pids, 5s);
  const Ran mortem = paceline("doctor --post-mortem status");
  EXPECT_EQ(mortem.code, 71);
  // The launcher ended task 0 too: which was first can be told where it waited for task 1.
  expect_match(last_line(mortem.out),
               "^ranks (2, 3 on " + host_name() + "|0, 1) ended without reporting an error");
}

TEST_F(Failures, ARunsFolderHoldsItsStatus) {
  succeed(
      "train mnist-mlp --input synthetic --train-limit 640 --epochs 1 --evaluate none --quiet "
      "--cpus-per-task 1 --run-dir run");
  EXPECT_EQ(last_line(succeed("doctor --post-mortem run/status").out), "all ranks ended well");
}

TEST_F(Failures, DeadlinesAreTimes) {
  expect_refused("train mnist-mlp --abort-seconds soon", 64,
                 {"--abort-seconds: \"soon\" is not a duration"});
  expect_refused("train mnist-mlp --warn-seconds 0", 64, {"--warn-seconds", "more than 0"});
  expect_refused("bench allreduce --abort-seconds -1", 64, {"--abort-seconds"});
  const Ran ran = shell("PACELINE_START_SECONDS=1e99 paceline train mnist-mlp --steps 1");
  EXPECT_EQ(ran.code, 64);
  EXPECT_TRUE(contains(ran.err, "PACELINE_START_SECONDS: ")) << ran.err;
  const Ran flight = shell("PACELINE_FLIGHT=maybe paceline train mnist-mlp --input synthetic");
  EXPECT_EQ(flight.code, 64);
  EXPECT_TRUE(contains(flight.err, "expected on or off")) << flight.err;
}

TEST_F(Failures, APostMortemOfNothingIsRefused) {
  expect_refused("doctor --post-mortem nowhere", 65, {"nowhere: not a folder"});
  expect_refused("doctor --post-mortem .", 65, {"the folder has no files of a run"});
}

TEST_F(Failures, ABackendThatCannotSumIsReportedBeforeTheFirstStep) {
  need("ring");
  const Ran ran =
      shell(std::string(kRun) +
            "--gpus 2 --backend ring --cpus-per-task 1 --first-sum-seconds 0.000000001");
  EXPECT_EQ(ran.code, 72) << ran.err;
  expect_parts(ran.err,
               {"a first sum of ", "over 2 ranks did not end within", "try another backend"});
  // What a job does where it was asked to fall back.
  const auto fallback = [&](const std::string& backend, const std::string& code,
                            const std::string& to = "mpi") {
    std::ofstream(folder() / "points")
        << R"(["train","mnist-mlp","--backend=)" << backend
        << R"(","--store=s","--context={\"study\":\"s\",\"point\":\"p\",\"point_folder\":\"p\",)"
        << R"(\"session\":\"1\",\"repeat\":1,\"round\":1}"])"
        << "\n";
    return paceline("element fallback --to " + to +
                    " --status status --points points --index 0 --exit-code " + code);
  };
  const Ran asked = expect_success(fallback("mirrored/ring+bf16", "72"));
  EXPECT_EQ(asked.out, "mirrored/mpi+bf16\n");
  EXPECT_TRUE(contains(asked.err, "falling back to mirrored/mpi+bf16")) << asked.err;
  EXPECT_EQ(fallback("gloo", "73").code, 1) << "another failure";
  EXPECT_EQ(fallback("mpi", "72").code, 1) << "nothing else to try";
  EXPECT_EQ(fallback("mpi", "72", "gloo").out, "gloo\n");
  EXPECT_EQ(fallback("mirrored/mpi", "72", "gloo").code, 1) << "gloo stands in no stack";
  const std::string two_steps = std::string(kRun) + "--cpus-per-task 1 --steps 2 --json";
  EXPECT_FALSE(contains(shell(two_steps).out, "fell_back"));
  EXPECT_TRUE(
      contains(shell("export PACELINE_FELL_BACK=1; " + two_steps).out, "\"fell_back\": true"));
}

}  // namespace
}  // namespace testing
}  // namespace paceline
