// Whole runs of the program on GPUs that the host plays, over an NCCL that is emulated too: tasks,
// the choice of GPUs, records, checkpoints, killed ranks, sweeps and elements of arrays.
#include <csignal>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/failure/flight_reader.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

class EmulatedProgram : public Cli {
 protected:
  EmulatedProgram() { setenv("FAKE_NCCL_FOLDER", folder().c_str(), 1); }
  ~EmulatedProgram() override {
    EXPECT_EQ(file_text(folder() / "misuse"), "");
    unsetenv("FAKE_NCCL_FOLDER");
  }
  Json record(const std::string& name) const { return Json::parse(file_text(folder() / name)); }
  std::string checksum(const std::string& name) const {
    return record(name)["quality"]["parameter_checksum"].get<std::string>();
  }

  const std::string run_ =
      "train mnist-mlp --device emulated --batch-per-replica 4 --train-limit 64 --test-limit 10 "
      "--evaluate none --oversubscribe --quiet ";
};

TEST_F(EmulatedProgram, ATaskAGpuOfItsOwnOfSeveralVisible) {
  succeed(run_ + "--gpus 2 --backend nccl --steps 8 --record r.json");
  const Json record = this->record("r.json");
  EXPECT_EQ(record["layout"]["ntasks"], 2);
  EXPECT_EQ(record["layout"]["replicas_are"], "gpus");
  ASSERT_EQ(record["gpus"].size(), 2U);
  EXPECT_NE(record["gpus"][0]["pci"], record["gpus"][1]["pci"]);
  EXPECT_EQ(record["gpus"][0]["name"], "Emulated GPU");
  // The same gradients, summed elsewhere.
  succeed(run_ + "--gpus 2 --backend mirrored/nccl --steps 8 --record one.json");
  EXPECT_EQ(this->record("one.json")["layout"]["ntasks"], 1);
  EXPECT_EQ(checksum("one.json"), checksum("r.json"));
  succeed(run_ + "--gpus 2 --backend nccl --steps 8 --no-step-graph --record p.json");
  EXPECT_EQ(checksum("p.json"), checksum("r.json"));
}

// A machine as lstopo describes it, with a CPU and a GPU on each of two NUMA nodes; the second
// node's GPU comes first.
class NearGpus : public EmulatedProgram {
 protected:
  void SetUp() override {
    if (!std::ranges::includes(usable_cpus(), CpuSet{0, 1})) GTEST_SKIP() << "needs CPUs 0 and 1";
  }
  Ran on_machine(const std::string& command) const {
    return shell("export HWLOC_XMLFILE='" PACELINE_SOURCE_DIR
                 "/tests/data/topologies/two-nodes.xml' "
                 "PACELINE_EMULATED_GPUS=2 PACELINE_EMULATED_PCI='0000:02:00.0 0000:01:00.0'\n" +
                 command);
  }
  // The record.
  Json train(const std::string& options, std::string* warnings = nullptr) const {
    const Ran ran = expect_success(on_machine(
        "taskset -c 0,1 \"$PACELINE_PROGRAM\" train mnist-mlp --device emulated "
        "--batch-per-replica 4 --train-limit 64 --test-limit 10 --evaluate none --gpus 2 "
        "--cpus-per-replica 1 --steps 2 --record r.json " +
        options));
    if (warnings != nullptr) *warnings = ran.err;
    Json made = record("r.json");
    for (const char* file : {"r.json", "r.steps.gz"}) std::filesystem::remove(folder() / file);
    return made;
  }
};

TEST_F(NearGpus, ReplicasHaveTheCpusOfTheirGpusNode) {
  for (const char* backend : {"nccl", "mirrored/nccl"}) {
    std::string warnings;
    const Json record = train("--backend " + std::string(backend), &warnings);
    EXPECT_EQ(record["provenance"]["affinity"], (Json{"1", "0"})) << backend;
    EXPECT_EQ(record["gpus"][0]["numa_node"], 1) << backend;
    EXPECT_EQ(record["gpus"][0]["cpus_numa_nodes"], "1") << backend;
    expect_no_parts(warnings, {"NUMA"});
  }
  expect_parts(on_machine("paceline list devices --json").out, {"02:00.0, 1.1 TB, NUMA node 1"});
}

TEST_F(NearGpus, CpusElsewhereAreNamed) {
  std::string warnings;
  const Json record = train("--backend nccl --cpu-binding in-order", &warnings);
  EXPECT_EQ(record["provenance"]["affinity"], (Json{"0", "1"}));
  EXPECT_EQ(record["parameters"]["cpu_binding"], "in-order");
  expect_parts(warnings, {"warning: of 2 of 2 replicas the CPUs are on another NUMA node",
                          "(0000:02:00.0 is on node 1, its replica's CPUs are on 0)"});
  std::ofstream(folder() / "r.json") << record;
  expect_parts(succeed("report r.json").out,
               {"in 1 of 1 run a replica's CPUs were on another NUMA node than its GPU",
                "0000:02:00.0", "--cpu-binding near-gpu"});
}

// Each process reads its own GPU; a second does not make ten updates of a hundred.
TEST_F(EmulatedProgram, EachGpusEnergyIsReadOnce) {
  setenv("PACELINE_EMULATED_WATTS", "300", 1);
  succeed(run_ + "--gpus 2 --backend nccl --steps 8 --record r.json");
  unsetenv("PACELINE_EMULATED_WATTS");
  const Json energy = record("r.json")["energy"];
  EXPECT_EQ(energy["covers"], "GPUs");
  EXPECT_NEAR(energy["idle_watts"], 600, 1);
  EXPECT_FALSE(energy.contains("joules"));
  EXPECT_TRUE(contains(energy["trouble"], "too short: it takes 10 s")) << energy;
  ASSERT_EQ(energy["meters"].size(), 2U);
  EXPECT_EQ(energy["meters"][0]["meter"], "GPU counter");
  EXPECT_EQ(energy["meters"][0]["counters"], 2);
  EXPECT_EQ(energy["meters"][1]["sampled"], true);
}

TEST_F(EmulatedProgram, TooFewGpusAreRefused) {
  setenv("PACELINE_EMULATED_GPUS", "1", 1);
  expect_refused(run_ + "--gpus 2 --backend mirrored/nccl --steps 1", 64,
                 {"2 GPUs", "1 is visible"});
  setenv("PACELINE_EMULATED_GPUS", "0", 1);
  expect_refused(run_ + "--gpus 1 --steps 1", 64, {"nobody plays one"});
  unsetenv("PACELINE_EMULATED_GPUS");
}

// The same sums, in host memory and by MPI in that of the GPUs, where it says that it can.
TEST_F(EmulatedProgram, MpiSumsGpuMemoryWhereItCan) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "without MPI";
  const std::string run = run_ + "--gpus 2 --backend mpi --steps 8 --precision ";
  const auto used = [&](const std::string& name) {
    return record(name)["provenance"]["backend_used"].get<std::string>();
  };
  succeed(run + "fp32 --record staged.json");
  expect_parts(used("staged.json"), {"MPI_Allreduce", ", staged in host memory"});
  EXPECT_EQ(record("staged.json")["plan"]["gradients_staged"], true);
  expect_parts(succeed("report staged.json").out, {"staged"});
  setenv("PACELINE_EMULATED_MPI", "1", 1);
  succeed(run + "fp32 --record direct.json");
  expect_parts(used("direct.json"), {"MPI_Allreduce", ", which takes GPU memory"});
  EXPECT_EQ(record("direct.json")["plan"]["gradients_staged"], false);
  EXPECT_EQ(checksum("direct.json"), checksum("staged.json"));
  setenv("PACELINE_MPI_GPU_MEMORY", "off", 1);
  succeed(run + "fp32 --record off.json");
  EXPECT_EQ(record("off.json")["plan"]["gradients_staged"], true);
  for (const char* name : {"PACELINE_EMULATED_MPI", "PACELINE_MPI_GPU_MEMORY"}) unsetenv(name);
}

TEST_F(EmulatedProgram, AScreenMeasuresEachGpu) {
  succeed(
      "screen --device emulated --gpus 2 --backend ring --oversubscribe --rounds 1 --out screen");
  const Json screen = Json::parse(file_text(folder() / "screen" / "screen.json"));
  ASSERT_EQ(screen["devices"].size(), 2U);
  EXPECT_EQ(screen["devices"][1]["kind"], "Emulated GPU");
  EXPECT_EQ(screen["devices"][1]["name"], "GPU 0000:01:00.0");
  std::vector<std::string> measured;
  for (const Json& each : screen["devices"][1]["measured"]) measured.push_back(each["measured"]);
  EXPECT_EQ(measured, (std::vector<std::string>{"multiply-adds in fp32", "memory copies",
                                                "multiply-adds in bf16", "copies from the host"}));
  expect_parts(screen["devices"][1]["remarks"].dump(), {"PCIe gen 5 x8 of x16"});
  expect_parts(paceline("list devices --json").out,
               {"PCIe gen 5 x8 of x16, other GPUs: 3 by NV18"});
}

// In the GPUs' memory, between nodes and within one.
TEST_F(EmulatedProgram, AScreenConnectsItsPairsByNccl) {
  const std::string run =
      "screen --device emulated --gpus 2 --backend nccl --oversubscribe --rounds 2 --out ";
  succeed(run + "within");
  const Json within = Json::parse(file_text(folder() / "within" / "screen.json"));
  EXPECT_EQ(within["nodes"][0]["measured"][0]["measured"], "sums of 4 MB within the node");
  EXPECT_EQ(within["nodes"][0]["measured"][1]["rates"].size(), 2U);
  setenv("PACELINE_TEST_RANKS_PER_NODE", "1", 1);
  succeed(run + "pairs");
  unsetenv("PACELINE_TEST_RANKS_PER_NODE");
  const Json pairs = Json::parse(file_text(folder() / "pairs" / "screen.json"));
  ASSERT_EQ(pairs["links"].size(), 1U);
  EXPECT_EQ(pairs["links"][0]["measured"][0]["measured"], "sums of 4 MB");
  EXPECT_TRUE(contains(pairs["transport"].get<std::string>(), "NCCL"));
}

TEST_F(EmulatedProgram, AScreenRefusesGpusThatOthersUse) {
  const std::string run =
      "screen --device emulated --gpus 2 --backend ring --oversubscribe --rounds 1 ";
  setenv("PACELINE_EMULATED_USED", "1", 1);
  const Ran ran = paceline(run);
  EXPECT_EQ(ran.code, 64);
  expect_parts(ran.err,
               {"GPU 0000:0", " is used by others: 30.0 GB of memory, 98 % busy", "--busy-ok"});
  succeed(run + "--busy-ok --out used");
  unsetenv("PACELINE_EMULATED_USED");
  expect_parts(file_text(folder() / "used" / "screen.json"), {"clocks limited by power cap"});
}

TEST_F(EmulatedProgram, RanksOfNcclShareAGpuFromTheVersionThatCan) {
  const std::string run = run_ + "--gpus 3 --steps 8 --backend ";
  const auto is_refused = [&](const std::string& backend, const std::vector<std::string>& parts) {
    const Ran ran = paceline(run + backend);
    EXPECT_EQ(ran.code, 64);
    expect_parts(ran.err, parts);
  };
  succeed(run + "nccl --record three.json");
  setenv("PACELINE_EMULATED_GPUS", "2", 1);
  is_refused("nccl", {"3 GPUs", "2 are visible"});
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  setenv("FAKE_NCCL_VERSION", "23003", 1);
  succeed(run + "nccl --record two.json");
  EXPECT_EQ(checksum("two.json"), checksum("three.json"));
  is_refused("mirrored/nccl", {"3 GPUs", "2 are visible"});  // threads
  setenv("FAKE_NCCL_VERSION", "23002", 1);
  is_refused("nccl", {"ranks 0 and 2 have the same GPU 0000:00:00.0",
                      "ranks share a card from NCCL 2.30.3 on, and this is NCCL 2.30.2"});
  // To NCCL of any version they are two nodes.
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  setenv("PACELINE_NCCL_RANKS_AS_NODES", "1", 1);
  succeed(run + "nccl --record nodes.json");
  EXPECT_EQ(checksum("nodes.json"), checksum("three.json"));
  expect_parts(record("nodes.json")["provenance"]["backend_used"].get<std::string>(),
               {"3 GPUs of 3 nodes"});
  is_refused("mirrored/nccl", {"3 GPUs", "2 are visible"});
  for (const char* name :
       {"PACELINE_EMULATED_GPUS", "PACELINE_NCCL_RANKS_AS_NODES", "FAKE_NCCL_VERSION"}) {
    unsetenv(name);
  }
}

TEST_F(EmulatedProgram, OldVersionsOfNcclAreUsedWithoutWhatTheyGetWrong) {
  const std::string run = run_ + "--gpus 2 --backend nccl --steps 8 --record ";
  succeed(run + "new.json");
  for (const std::string version : {"22402", "22605", "22702"}) {
    setenv("FAKE_NCCL_VERSION", version.c_str(), 1);
    succeed(run + version + ".json");
    EXPECT_EQ(checksum(version + ".json"), checksum("new.json"));
    const auto used = record(version + ".json")["provenance"]["backend_used"].get<std::string>();
    expect_parts(used, {"sums are queued between graphs"});
  }
  unsetenv("FAKE_NCCL_VERSION");
}

TEST_F(EmulatedProgram, AResumedRunIsTheUninterruptedOne) {
  const std::string run = run_ + "--gpus 2 --backend nccl --optimizer adam ";
  succeed(run + "--steps 12 --record whole.json");
  succeed(run + "--steps 8 --checkpoint-every 4steps --run-dir run");
  const Ran resumed = succeed(run + "--steps 12 --run-dir run --resume latest --record r.json");
  EXPECT_TRUE(record("r.json")["flags"]["resumed"]);
  EXPECT_EQ(checksum("r.json"), checksum("whole.json"));
}

TEST_F(EmulatedProgram, AKilledRankIsNamed) {
  const auto status = folder() / "status";
  auto run = std::async(std::launch::async, [&] {
    return shell("PACELINE_STATUS_DIR=$PWD/status paceline " + run_ +
                 "--gpus 2 --backend nccl --epochs 100000");
  });
  std::vector<RankStatus> ranks;
  const auto all_train = [&] {
    ranks = read_statuses(status);
    const auto flights = read_flights(status);
    return ranks.size() == 2 && flights.size() == 2 &&
           std::ranges::all_of(flights, [](const Flight& flight) { return flight.step > 10; });
  };
  while (!all_train()) ASSERT_NE(run.wait_for(20ms), std::future_status::ready) << run.get().err;
  kill(ranks[1].pid, SIGKILL);
  const Ran ran = run.get();
  EXPECT_EQ(ran.code, 71);
  expect_parts(ran.err, {"paceline: rank 1 on ", "died of signal 9"});
}

TEST_F(EmulatedProgram, ASweepHasATable) {
  std::ofstream(folder() / "s.json")
      << R"({"name": "s", "workload": "mnist-mlp", "repeats": 1, "control": false,
             "axes": {"gpus": [1, 2], "device": ["emulated"], "backend": ["nccl"]},
             "fixed": {"steps": 4, "batch_per_replica": 4, "evaluate": "none"}})";
  succeed("sweep s.json --results r");
  expect_parts(succeed("report r/s --verbose").out, {"nccl"});
}

TEST_F(EmulatedProgram, AnElementOfAnArrayRuns) {
  std::ofstream(folder() / "points")
      << R"(["train","mnist-mlp","--gpus=1","--backend=nccl","--device=emulated","--steps=2",)"
      << R"("--batch-per-replica=4","--evaluate=none","--quiet","--store=)"
      << (folder() / "study").string()
      << R"(","--context={\"study\": \"s\", \"point\": \"gpus=1\", )"
      << R"(\"point_folder\": \"gpus=1\", \"repeat\": 1, \"session\": \"S\", \"round\": 1}"])";
  const std::string element = " --points points --index 0";
  const Ran begun = paceline("element begin" + element);
  EXPECT_EQ(begun.out, "run\n") << begun.err;
  succeed("element run" + element);
  succeed("element end --exit-code 0 --log log" + element);
  const Json record = this->record("study/gpus=1/1.1.json");
  EXPECT_EQ(record["status"], "completed");
  EXPECT_EQ(record["gpus"][0]["name"], "Emulated GPU");
  EXPECT_EQ(paceline("element begin" + element).out, "done\n");
}

}  // namespace
}  // namespace paceline
