// submit and element: what is sent, and what is not sent twice.
#include "results/names.h"
#include "tests/integration/cli/slurm_cli.h"
#include "tests/support/has_engine.h"

namespace paceline {
namespace {

class CliSubmit : public CliSlurm {};

TEST_F(CliSubmit, AnUnclearAnswerSendsNothingTwice) {
  const std::string programs = with(
      "play sbatch 'echo x >> calls; echo \"slurm: Socket timed out\" >&2; exit 1'; "
      "play squeue \"[ -e '$PWD/calls' ] || exit 0; case \\\"\\$*\\\" in *--name=*) echo 5;; "
      "*) echo '5_[0-1]|PENDING|Resources';; esac\"; play sacct :; play scontrol :; "
      "play scancel \"echo \\\"\\$*\\\" > '$PWD/cancelled'\"");
  const std::string submit =
      "paceline submit s.json --site site.json --yes --no-collect --data-elsewhere";
  expect_parts(expect_success(shell(programs + submit)).out, {"job 5: "});
  expect_parts(shell(programs + submit).out, {"2 in the queue"});
  EXPECT_EQ(file_text(folder() / "calls"), "x\n");
}

TEST_F(CliSubmit, AfterARefusalNothingIsUnclear) {
  write("two.json", R"({"name": "two", "workload": "mnist-mlp", "fixed": {"device": "cpu",
      "backend": "mpi", "cpus_per_task": 1}, "axes": {"gpus": [1, 2]}})");
  const std::string refusing =
      with("play sbatch 'echo no such account >&2; exit 1'; play squeue :; play sacct :");
  const Ran refused =
      shell(refusing + "paceline submit two.json --site site.json --yes --data-elsewhere");
  EXPECT_EQ(refused.code, 64) << refused.err;
  expect_parts(refused.err, {"sbatch refused it: no such account"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "results/local/two"))
      << "a new study leaves nothing";
  shell("mkdir -p results/local/two; " + refusing +
        "paceline submit two.json --site site.json --yes --data-elsewhere");
  const Ran status = shell(refusing + "paceline status results/local/two");
  EXPECT_EQ(status.code, 1) << status.err;
  expect_parts(status.out, {"2 not submitted", "not submitted: submit stopped before its array"});
  expect_no_parts(status.out, {"not known"});
}

TEST_F(CliSubmit, TheDryRunAsksForPartitionAndAccount) {
  write("there.json", R"({"name": "x", "partition": "gpu,cpus", "account": "Phys"})");
  const Ran ran = shell(with("play sinfo 'echo cpu; echo gpu'; play sacctmgr 'echo bio\\|'; "
                             "play squeue :; play sacct :; play scontrol :") +
                        "paceline submit s.json --site there.json --dry-run --data-elsewhere");
  expect_parts(expect_success(ran).out,
               {"warning: there.json: there is no partition cpus; did you mean \"cpu\"?",
                "there is no account of yours phys"});
}

TEST_F(CliSubmit, SiteAndResultsCanBeConfigured) {
  expect_refused("submit s.json --dry-run", 64, {"--site"});
  std::filesystem::create_directories(folder() / "configuration/paceline");
  write("configuration/paceline/config.json", R"({"site": "here.json", "results": "there"})");
  write("configuration/paceline/here.json", R"({"name": "here", "program": "/opt/paceline"})");
  expect_parts(succeed("submit s.json --dry-run --data-elsewhere").out,
               {"paceline/here.json: \"cores_per_node\""});
  expect_no_parts(succeed("submit s.json --site site.json --dry-run --data-elsewhere").out,
                  {"here.json"});
  expect_parts(succeed("submit --help").out, {"[default: there]", "here.json]"});
  expect_parts(shell("COLUMNS=300 paceline doctor").out,
               {"there (", "here.json (", "configuration/paceline/config.json:1)"});
  const std::string import =
      "import csv '" PACELINE_SOURCE_DIR "/tests/data/import/csv-scaling.csv' --set workload=w ";
  succeed(import + "--study t");
  EXPECT_TRUE(std::filesystem::exists(folder() / "there/t"));
  expect_parts(paceline("report t").err, {"did you mean there/t?"});

  write("configuration/paceline/config.json", R"({"reslts": "there"})");
  for (const char* verb : {"submit s.json --site site.json --dry-run", "sweep s.json --dry-run"}) {
    expect_refused(verb, 65, {"config.json:1", "reslts", "results"});
  }
  expect_refused(import + "--study u", 65, {"reslts"});
  const Ran doctor = shell("COLUMNS=300 paceline doctor");
  EXPECT_EQ(doctor.code, 1);
  expect_parts(doctor.out, {"results/local (built in)", "failed:", "reslts"});
  expect_refused("submit s.json --dry-run", 65, {"config.json:1", "reslts"});
  succeed("sweep --help");
  write("configuration/paceline/config.json", R"({"site": "none.json"})");
  expect_parts(shell("COLUMNS=300 paceline doctor").out,
               {"failed: ", "config.json:1: none.json: no such file"});
}

TEST_F(CliSubmit, WithoutSlurmNothingIsHalfDone) {
  const std::string without = "ln -s /usr/bin/timeout /usr/bin/bash .; PATH=$PWD\n";
  const Ran ran = shell(without + "paceline submit s.json --site site.json --yes");
  EXPECT_EQ(ran.code, 64);
  expect_parts(ran.err, {"sbatch is not in PATH; log in to a node"});
  EXPECT_EQ(shell("ls results/local/s").out, "") << "nobody was asked for anything";
  expect_parts(expect_success(shell(with("play sbatch 'echo 7'; play squeue :") +
                                    "paceline submit s.json --site site.json --yes --no-collect"))
                   .out,
               {"1 array, 2 elements"});
}

TEST_F(CliSubmit, TheBudgetAndTheConfirmation) {
  const Ran over = paceline("submit " + kCassava + " --site " + kGpu +
                            " --set device=cuda --max-gpu-hours 1 --yes --data-elsewhere");
  if (!contains(over.err, "this build has no engine")) {
    EXPECT_EQ(over.code, 64);
    expect_parts(over.err, {"GPU-hours are more than --max-gpu-hours 1"});
    const Ran dry = succeed("submit " + kCassava + " --site " + kGpu +
                            " --set device=cuda --max-gpu-hours 1 --dry-run");
    expect_parts(dry.out, {"warning: more than --max-gpu-hours 1: submit will refuse"});
  }
  const Ran nobody = paceline("submit s.json --site site.json");
  EXPECT_EQ(nobody.code, 64);
  expect_parts(nobody.err, {"there is no terminal to confirm the cost on; add --yes"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "results")) << "nothing of it is left";
}

TEST_F(CliSubmit, SubmittedAgainOnlyWhatIsInNoQueue) {
  const std::string programs = with(
      "play sbatch 'echo x >> calls; echo 5'; play squeue \"cat '$PWD/queue' 2>/dev/null; exit "
      "0\"; "
      "play sacct \"cat '$PWD/history' 2>/dev/null; exit 0\"; play scontrol 'exit 1'; "
      "play scancel \"echo \\\"\\$*\\\" > '$PWD/cancelled'\"");
  const std::string submit = "paceline submit s.json --site site.json --yes --no-collect\n";
  ASSERT_EQ(shell(programs + submit).code, 0);
  write("queue", "5_[0-1%2]|PENDING|Resources\n");
  expect_parts(shell(programs + submit).out, {"0 arrays, 0 elements", "2 in the queue"});
  Ran status = shell(programs + "paceline status results/local/s");
  EXPECT_EQ(status.code, 0);
  expect_parts(status.out, {"gpus=1,backend=self  [..] 0 of 2 done"});
  EXPECT_EQ(shell(programs + "paceline cancel results/local/s").code, 0);
  EXPECT_EQ(file_text(folder() / "cancelled"), "5\n");
  write("queue", "");
  write("history", "5_0|TIMEOUT|0:0|n1\n5_1|CANCELLED by 0|0:15|n1\n");
  status = shell(programs + "paceline status results/local/s");
  EXPECT_EQ(status.code, 1);
  expect_parts(status.out, {"TIMEOUT after 60 min"});
  const Ran again = shell(programs + submit);
  expect_parts(again.out, {"again: gpus=1,backend=self repeat 1: TIMEOUT"});
  EXPECT_TRUE(contains(again.out, "2:00:00")) << "twice the time\n" << again.out;
  EXPECT_EQ(file_text(folder() / "calls"), "x\nx\n");
}

TEST_F(CliSubmit, AnElementAroundItsRun) {
  write("points",
        R"(["train","mnist-mlp","--gpus=1","--backend=self","--device=cpu","--quiet","--store=)" +
            (folder() / "study").string() +
            R"(","--context={\"study\": \"s\", \"point\": \"gpus=1\", )"
            R"(\"point_folder\": \"gpus=1\", \"repeat\": 1, \"session\": \"S\", \"round\": 1}"])");
  const std::string element = " --points points --index 0";
  EXPECT_EQ(succeed("element begin" + element).out, "run\n");
  write("log", "something\npaceline: rank 1 was killed (here); do this\nsrun: error: n1: task 1\n");
  EXPECT_EQ(paceline("element end --exit-code 71 --log log" + element).code, 71);
  expect_parts(file_text(folder() / "study" / "gpus=1" / "1.1.json"),
               {"rank 1 was killed (here); do this (exit code 71)", "\"status\": \"failed\""});
  // Its job has two nodes and a mask of one CPU: refused before anything runs.
  const Ran refused = shell(
      "SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURMD_NODENAME=n1 "
      "paceline element begin" +
      element);
  EXPECT_EQ(refused.code, 64);
  expect_parts(refused.err, {"job 7: the job has 2 nodes, its run needs 1"});
  EXPECT_EQ(refused.out, "");
}

TEST_F(CliSubmit, RunsOfTheLoginNodeAreNotDone) {
  if (!find_name("device", "cpu").built) GTEST_SKIP() << "this build has no engine";
  write("t.json", R"({"name": "t", "workload": "mnist-mlp", "repeats": 2, "fixed": {"device": "cpu",
    "cpus_per_task": 1, "steps": 3, "input": "synthetic"}, "axes": {"backend": ["self"]}})");
  const std::string results = " --results r";
  succeed("sweep t.json --no-report" + results);
  const Ran ran = succeed("submit t.json --dry-run --site site.json" + results);
  expect_parts(ran.out,
               {"note: 2 runs of another machine (", "1 array, 2 elements", "0 runs are done"});
  expect_no_parts(ran.out, {"again: "});
  // A profile whose nodes are like this machine: they count.
  write("like.json", R"({"name": "x", "node": {"cpus": )" +
                         shell("grep -c ^processor /proc/cpuinfo | tr -d '\\n'").out + "}}");
  const Ran like = paceline("submit t.json --dry-run --site like.json" + results);
  EXPECT_TRUE(contains(like.out, "2 runs are done")) << like.out << like.err;
  write("unlike.json", R"({"name": "x", "node": {"cpu": "Z80", "gpus": 1}})");
  expect_refused("submit t.json --site unlike.json", 65,
                 {"unknown key \"gpus\"", "did you mean \"cpus\"?"});
}

}  // namespace
}  // namespace paceline
