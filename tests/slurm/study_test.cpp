// Studies of mnist-mlp on a real Slurm cluster: to a table, interrupted, over several nodes.
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/slurm/cluster.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

class SlurmStudy : public OnCluster {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<Cluster>(); }

  // Open MPI 4.1, started by srun of Slurm 22.05 on several nodes, now and then calls what is not
  // there yet: a message of another node comes while MPI_Init waits for its first fence, before
  // anything receives messages. It prints a frame of libc alone.
  bool open_mpi_crashed(const std::string& name, const std::string& in) const {
    static const std::regex trace(
        R"(Failing at address: \(nil\)\n.* \[ 0\] .*libc.*\n.* \*\*\* End of)");
    const std::string logs = shell("cat '" + study(name, in).string() + "'/slurm/*/*.log").out;
    return std::regex_search(logs, trace);
  }
};

constexpr char kData[] = " --data '" PACELINE_SOURCE_DIR "/data' ";

TEST_F(SlurmStudy, TwoShapesThreeRepeatsTwoBackendsToATable) {
  write_site("site.json");
  write("two.json", R"({"name": "two", "workload": "mnist-mlp", "repeats": 3,
    "fixed": {"device": "cpu", "cpus_per_task": 1, "epochs": 1, "train_limit": 2000,
              "test_limit": 200},
    "axes": {"gpus": [1, 2], "backend": ["mpi", "gloo"]}})");
  const std::string submit =
      std::string("paceline submit two.json --site site.json --results results") + kData;
  const Ran dry = expect_success(shell(submit + "--dry-run"));
  expect_parts(dry.out, {"2 arrays, 12 elements"});
  EXPECT_EQ(shell("squeue -h").out, "") << "a dry run sends nothing";
  EXPECT_FALSE(std::filesystem::exists(study("two")));

  const Ran unconfirmed = shell(submit);
  EXPECT_EQ(unconfirmed.code, 64) << unconfirmed.out;
  expect_parts(unconfirmed.out, {"add --yes"});

  expect_success(shell(submit + "--yes"));
  const Ran at_once = expect_success(shell(submit + "--yes"));
  EXPECT_TRUE(contains(at_once.out, "0 arrays, 0 elements")) << "all are in the queue or done\n"
                                                             << at_once.out;
  wait_for_the_queue();
  expect_all_once(study("two"), 12);
  expect_parts(
      expect_success(shell("paceline status results/two")).out,
      {"12 of 12 runs done", "1 node, 2 tasks of 1 CPU", "gpus=2,backend=gloo  [###] 3 of 3 done"});

  // The job that follows the arrays has made the table, and looked at the reference runs.
  expect_parts(shell("cat results/two/slurm/*/collect.*.log").out,
               {"speed-up", "reference runs: 12 on ", "12 of 12 runs done"});
  EXPECT_TRUE(std::filesystem::exists(study("two") / "report" / "report.md"));
  const Record record = load_store(study("two")).records.front();
  const Json& allocation = record.json().at("provenance").at("allocation");
  EXPECT_EQ(allocation.at("partition"), "main");
  EXPECT_TRUE(allocation.contains("array_task"));
  EXPECT_GE(allocation.at("other_jobs"), 0);
}

TEST_F(SlurmStudy, InterruptedRunsAreMadeOnceAfterOneResubmission) {
  write_site("requeue.json",
             R"("requeue": true, "reference": false, "array": {"throttle": 1},
         "launcher_options": ["--mpi=pmix", "--wait=5"])");
  // Long enough to be interrupted. One at a time: ranks that share cores take many times as long.
  write("cut.json", R"({"name": "cut", "workload": "mnist-mlp",
    "fixed": {"device": "cpu", "gpus": 2, "cpus_per_task": 1, "input": "synthetic",
              "evaluate": "none", "steps": )" +
                        steps_in(4) + R"(},
    "axes": {"backend": ["mpi", "ring"], "seed": [1, 2]}, "order": "sequential"})");
  const std::string submit =
      "paceline submit cut.json --site requeue.json --results results --yes --no-collect";
  ASSERT_EQ(shell(submit).code, 0);
  const auto job_is_running = [&](int element) {
    return contains(shell("squeue -h -r -t R -o %K:").out, std::to_string(element) + ":");
  };
  const auto ranks = [&](const std::string& axes) {
    return shell("pgrep -f '^" PACELINE_BINARY " train .*" + axes + ".*results/cut'").out;
  };
  const std::string job = "$(squeue -h -r -o %F | head -n 1)";

  // In the order of the points file: mpi 1, mpi 2, ring 1, ring 2.
  ASSERT_TRUE(soon([&] { return job_is_running(0); }));
  EXPECT_EQ(shell("scancel " + job + "_0").code, 0);
  ASSERT_TRUE(soon([&] { return !ranks("--backend=mpi .*--seed=2").empty(); }));
  expect_success(shell("kill -9 $(pgrep -f '^" PACELINE_BINARY
                       " train .*--backend=mpi .*--seed=2.*results/cut' | tail -n 1)"));
  ASSERT_TRUE(soon([&] { return !ranks("--backend=ring .*--seed=1").empty(); }));
  EXPECT_EQ(shell("scancel --signal=KILL $(squeue -s -h -o %i | grep _2 | grep -v batch)").code, 0);
  ASSERT_TRUE(soon([&] { return !ranks("--backend=ring .*--seed=2").empty(); }));
  EXPECT_EQ(shell("scontrol requeue " + job + "_3").code, 0);
  wait_for_the_queue();

  const Ran status = shell("paceline status results/cut");
  EXPECT_EQ(status.code, 1) << status.out;
  EXPECT_TRUE(contains(status.out, "1 of 4 runs done, 3 failed"))
      << status.out
      << shell(
             "tail -n 20 results/cut/slurm/*/*.log; cat ../*/log/slurmctld.log | tail -n 40; tail "
             "-n 20 ../*/log/slurmd.*")
             .out;
  expect_parts(status.out, {"CANCELLED"});
  EXPECT_EQ(shell("ls -d [0-9]*_[0-9]* 2> /dev/null").out, "")
      << "statuses of ranks belong into the study";
  const Ran collect = shell("paceline collect results/cut");
  EXPECT_EQ(collect.code, 1) << collect.out;
  expect_parts(collect.out, {"ended without a record"});

  const Ran again = expect_success(shell(submit));
  expect_parts(again.out, {"1 array, 3 elements", "again: backend=mpi,seed=1 repeat 1: "});
  wait_for_the_queue();
  expect_all_once(study("cut"), 4);
  expect_parts(shell("paceline status results/cut").out, {"4 of 4 runs done"});
}

// At its start no rank hears of a signal that is sent to srun: each has begun its first step.
TEST_F(SlurmStudy, RunsThatTheLimitsSignalEndedSaySo) {
  write_site("limit.site", R"("reference": false, "time": {"minutes": 40})");
  const auto write_spec = [&](const std::string& name, const std::string& keys) {
    write(name + ".json", R"({"name": ")" + name + R"(", "workload": "mnist-mlp",
      "fixed": {"device": "cpu", "cpus_per_task": 1, "input": "synthetic", "evaluate": "none",
                "steps": 1000000, )" +
                              keys + "}}");
  };
  write_spec("alone", R"("gpus": 1, "backend": "self")");
  write_spec("ranks", R"("gpus": 2, "backend": "ring")");
  write_spec("saved", R"("gpus": 2, "backend": "ring", "checkpoint_every": "500000steps")");
  write("program.json", R"j({"name": "program", "workload": "command", "fixed": {"gpus": 1},
    "command": ["sh", "-c", "echo epoch 3; exec sleep 3000"],
    "results": {"samples_per_second": {"line": "rate ([0-9]+)"}}})j");
  const auto submit = [&](const std::string& name, const std::string& how) {
    return shell("paceline submit " + name +
                 ".json --site limit.site --results results "
                 "--no-collect " +
                 how);
  };
  const std::vector<std::string> studies = {"alone", "ranks", "saved", "program"};
  for (const std::string& name : studies) ASSERT_EQ(submit(name, "--yes").code, 0);
  for (const char* name : {"alone", "ranks", "saved"}) ASSERT_TRUE(trains(name)) << name;
  ASSERT_TRUE(
      soon([&] { return contains(shell("cat results/program/slurm/*/*.log").out, "epoch 3"); }));
  shell("scancel --batch --signal=USR1 $(squeue -h -r -o %A)");
  wait_for_the_queue();

  const std::string signal = "ended by the signal before the job's time limit of 40 min";
  const std::string at = " at step [1-9][0-9]* of 1000000";
  const std::string raise = "; raise time.minutes of the site profile";
  const std::string rise = raise + ", or let the next submit double the limit";
  const std::map<std::string, std::string> reasons = {
      {"alone", at + rise},
      {"ranks", at + rise},
      {"saved", at + ", with a complete checkpoint, from which the next submit goes on" + raise},
      {"program", ": program was killed by SIGUSR1; its last line: epoch 3" + rise}};
  for (const std::string& name : studies) {
    SCOPED_TRACE(name);
    const auto records = load_store(study(name)).records;
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0]->status, name == "saved" ? "preempted" : "timeout");
    const std::string& reason = records[0]->reason;
    EXPECT_TRUE(std::regex_match(reason, std::regex(signal + reasons.at(name)))) << reason;
    EXPECT_EQ(shell("tail -q -n 1 results/" + name + "/slurm/*/*.log").out,
              "paceline: " + reason + "\n");
    expect_parts(shell("paceline status results/" + name).out, {reason});
    expect_parts(shell("paceline report results/" + name).out, {reason});
    expect_parts(submit(name, "--dry-run").out, {name == "saved" ? " 0:40:00 " : " 1:20:00 "});
  }
}

TEST_F(SlurmStudy, SeveralNodesBySrunAndByMpirun) {
  if (!cluster_->has_several_hosts()) {
    GTEST_SKIP() << "no right to make network namespaces: all nodes are one host";
  }
  write("nodes.json", R"({"name": "nodes", "workload": "mnist-mlp",
    "fixed": {"device": "cpu", "nodes": 2, "cpus_per_task": 1, "input": "synthetic", "steps": 20,
              "evaluate": "none"},
    "axes": {"gpus": [2, 4], "backend": ["mpi", "gloo"]}})");
  // Open MPI 5 binds all ranks of a further node to its first CPU in a job of Slurm 24.11; such
  // runs are refused before their first step (docs/slurm.md).
  const bool five = contains(shell("mpirun --version").out, "(Open MPI) 5");
  for (const std::string launcher : {"srun", "mpirun"}) {
    if (five && launcher == "mpirun") continue;
    SCOPED_TRACE(launcher);
    write_site(launcher + ".json", "\"reference\": false, \"launcher\": \"" + launcher + "\"");
    const std::string submit = "paceline submit nodes.json --site " + launcher +
                               ".json --results " + launcher + " --yes --no-collect";
    expect_success(shell(submit));
    wait_for_the_queue();
    if (open_mpi_crashed("nodes", launcher)) {
      expect_parts(expect_success(shell(submit)).out, {"again: "});
      wait_for_the_queue();
    }
    expect_all_once(study("nodes", launcher), 4);
    for (const Record& record : load_store(study("nodes", launcher)).records) {
      const Json& hosts = record.json().at("provenance").at("hosts");
      EXPECT_EQ(std::set<Json>(hosts.begin(), hosts.end()).size(), 2U) << hosts.dump();
    }
  }
}

// Sites export them; they would leave one CPU to a task, and the same to all tasks.
TEST_F(SlurmStudy, OpenMpVariablesTakeNoCpus) {
  for (const std::string variable :
       {"OMP_PROC_BIND=true", "OMP_PLACES=cores", "GOMP_CPU_AFFINITY=0", "KMP_AFFINITY=compact"}) {
    SCOPED_TRACE(variable);
    const auto usable = [&](const std::string& assignment) {
      return shell(assignment + " srun -n 1 -c 2 '" PACELINE_BINARY "' doctor | grep 'usable CPUs'")
          .out;
    };
    EXPECT_EQ(usable(variable), usable(""));
    expect_parts(usable(variable), {"affinity mask"});
  }
  write_site("bound.site",
             R"("reference": false, "setup": ["export OMP_PROC_BIND=true OMP_PLACES=cores"])");
  write("bound.json", R"({"name": "bound", "workload": "mnist-mlp",
    "fixed": {"device": "cpu", "gpus": 2, "cpus_per_task": 1, "input": "synthetic", "steps": 20,
              "evaluate": "none"},
    "axes": {"backend": ["ring"]}})");
  expect_success(
      shell("paceline submit bound.json --site bound.site --results results --yes --no-collect"));
  wait_for_the_queue();
  expect_all_once(study("bound"), 1);
  const std::string log = shell("cat results/bound/slurm/*/*.log").out;
  expect_parts(log, {"OMP_PROC_BIND, OMP_PLACES set aside: "});
  expect_no_parts(log, {"would share CPUs"});
}

// The first process starts the ranks: itself on its node, by the job's launcher on several.
TEST_F(SlurmStudy, AProgramOfTheUsersOwnHasItsRanks) {
  const std::string nodes = cluster_->has_several_hosts() ? "[1, 2]" : "[1]";
  write_site("own.site", R"("reference": false, "launcher_options": ["--mpi=none", "--wait=5"])");
  write("own.json", R"j({"name": "own", "workload": "command", "processes": "replica",
    "setup": ["sh", "-c", "echo setup on $(hostname)"],
    "command": ["sh", "-c",
      "echo rank $RANK/{world_size} node {node_rank} store {address}:{port}; test {rank} = 1 || echo rate 7"],
    "results": {"samples_per_second": {"line": "rate ([0-9]+)"}},
    "fixed": {"gpus": 2, "cpus_per_task": 1}, "axes": {"nodes": )j" +
                        nodes + "}}");
  expect_success(
      shell("paceline submit own.json --site own.site --results results --yes --no-collect"));
  wait_for_the_queue();
  expect_all_once(study("own"), cluster_->has_several_hosts() ? 2 : 1);
  const std::string one = shell("cat results/own/slurm/*/1n2t1c.*.log").out;
  expect_parts(one, {"rank 0/2 node 0 store 127.0.0.1:", "rank 1/2 node 0"});
  if (!cluster_->has_several_hosts()) return;
  const std::string two = shell("cat results/own/slurm/*/2n2t1c.*.log").out;
  std::smatch nodes_of_job;
  const std::regex expected(R"(setup on (n\d)\nsetup on (n\d)\n)");
  ASSERT_TRUE(std::regex_search(two, nodes_of_job, expected)) << two;
  EXPECT_NE(nodes_of_job[1], nodes_of_job[2]);
  EXPECT_TRUE(std::regex_search(two, std::regex("rank 0/2 node 0 store n\\d:"))) << two;
  EXPECT_TRUE(std::regex_search(two, std::regex("rank 1/2 node 1 store n\\d:"))) << two;
  EXPECT_FALSE(contains(one + two, "left ")) << two;
  // Ranks that Slurm's daemon started look like others' processes.
  for (const Record& record : load_store(study("own")).records) {
    const Json& load = record.json().at("provenance").at("machine_load");
    EXPECT_TRUE(record->layout.nodes == 1 || !load.contains("other_cpu_share")) << load.dump();
  }

  write("bad.json", R"j({"name": "bad", "workload": "command", "processes": "node",
    "command": ["sh", "-c", "echo rate 7; echo node {node_rank}; exit {node_rank}"],
    "results": {"samples_per_second": {"line": "rate ([0-9]+)", "pick": "first"}},
    "fixed": {"gpus": 2, "nodes": 2, "cpus_per_task": 1}})j");
  expect_success(
      shell("paceline submit bad.json --site own.site --results results --yes --no-collect"));
  wait_for_the_queue();
  const std::string status = shell("paceline status results/bad").out;
  expect_parts(status, {"0 of 1 runs done, 1 failed", "bad ended with exit code 1"});
}

// What runs read and write is bound by itself; nothing else of the node is seen.
TEST_F(SlurmStudy, RunsInAContainerFindWhatTheyNeed) {
  const Ran plays = shell("mkdir image && cp '" PACELINE_BINARY "' image/ && '" PACELINE_SOURCE_DIR
                          "/tests/slurm/apptainer' exec image paceline --version");
  if (plays.code != 0) GTEST_SKIP() << "no right to make a mount namespace: " << plays.out;
  write_site("box.json", R"("data": ")" PACELINE_SOURCE_DIR
                         R"(/data", "container": {"on": true, "nv": false,
    "command": ")" PACELINE_SOURCE_DIR R"(/tests/slurm/apptainer", "image": ")" +
                             cluster_->work() + R"(/image"})");
  write("box.json.spec", R"({"name": "box", "workload": "mnist-mlp",
    "fixed": {"device": "cpu", "cpus_per_task": 1, "epochs": 1, "train_limit": 1000,
              "test_limit": 100},
    "axes": {"gpus": [1, 2], "backend": ["mpi", "gloo"]}})");
  expect_success(
      shell(std::string("paceline submit box.json.spec --site box.json --results results --yes") +
            kData));
  wait_for_the_queue();
  expect_all_once(study("box"), 4);
  expect_no_parts(shell("cat results/box/slurm/*/*.log").out, {"PMIX ERROR"});
  for (const Record& record : load_store(study("box")).records) {
    const std::string command = record.json().at("provenance").at("command");
    EXPECT_TRUE(command.starts_with("paceline train ")) << command;  // the image's
  }
  expect_parts(expect_success(shell("paceline collect results/box")).out, {"4 of 4 runs done"});
}

TEST_F(SlurmStudy, AScreenIsAJobOrComesBeforeEachRun) {
  const int nodes = cluster_->has_several_hosts() ? 4 : 1;
  write_site("screen.site", R"("reference": false)");
  const Ran ran = expect_success(
      shell("paceline screen --site screen.site --rounds 2 --out screen --wait --yes --nodes " +
            std::to_string(nodes)));
  expect_parts(ran.out, {"minutes: at most 0.0 GPU-hours, ", "paceline screen report screen\n",
                         nodes == 1 ? "1 node, 1 device, 0 links" : "4 nodes, 4 devices, 4 links"});
  write("screened.json", R"({"name": "screened", "workload": "mnist-mlp",
    "fixed": {"device": "cpu", "gpus": 2, "cpus_per_task": 1, "input": "synthetic",
              "evaluate": "none", "steps": 20}, "axes": {"backend": ["ring"]}})");
  expect_success(
      shell("paceline submit screened.json --site screen.site --results results --screen --yes "
            "--no-collect"));
  wait_for_the_queue();
  expect_all_once(study("screened"), 1);
  const Record record = load_store(study("screened")).records.front();
  ASSERT_TRUE(record->provenance.screened) << shell("cat results/screened/slurm/*/*.log").out;
  EXPECT_FALSE(record->provenance.screened->started_at.empty());
  EXPECT_TRUE(record->provenance.screened->slow.empty());  // two alike are not compared
}

TEST_F(SlurmStudy, CancelTakesAStudyOutOfTheQueue) {
  write("slow.json", R"({"name": "slow", "workload": "mnist-mlp", "repeats": 2,
    "fixed": {"device": "cpu", "cpus_per_task": 1, "input": "synthetic", "steps": 1000000,
              "evaluate": "none"},
    "axes": {"gpus": [1], "backend": ["self"]}})");
  write_site("one.json", R"("reference": false, "array": {"throttle": 1})");
  ASSERT_EQ(shell("paceline submit slow.json --site one.json --results results --yes").code, 0);
  ASSERT_TRUE(soon([&] { return contains(shell("squeue -h -t R -o %j").out, "slow"); }));
  const Ran cancelled = expect_success(shell("paceline cancel results/slow"));
  expect_parts(cancelled.out, {"cancelled 1 running and 1 pending runs"});
  shell("scancel -u $(id -un)");  // the collector, too
  wait_for_the_queue();
  expect_parts(shell("paceline cancel results/slow").out, {"nothing of this study"});
  expect_parts(shell("paceline status results/slow").out, {"0 of 2 runs done, 2 failed"});
}

TEST_F(SlurmStudy, ARefusalHasSlurmsWordsAndOurs) {
  write_site("nope.json", R"("partition": "nope")");
  write("tiny.json", R"({"name": "tiny", "workload": "mnist-mlp", "axes": {"gpus": [1]}})");
  const Ran refused = shell("paceline submit tiny.json --site nope.json --results results --yes");
  EXPECT_EQ(refused.code, 64) << refused.out;
  expect_parts(refused.out, {"nvalid partition", "check account, partition, qos"});
  write_site("impossible.json", R"("extra": ["#SBATCH --gres=gpu:9"])");
  const Ran impossible =
      shell("paceline submit tiny.json --site impossible.json --results results --yes");
  EXPECT_EQ(impossible.code, 64) << impossible.out;
  expect_parts(impossible.out, {"not available"});
  EXPECT_EQ(shell("squeue -h").out, "");
}

}  // namespace
}  // namespace paceline
