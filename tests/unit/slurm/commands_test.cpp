#include "slurm/commands.h"

#include <gtest/gtest.h>

#include "slurm/job_check.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

class Commands : public ::testing::Test {
 protected:
  SlurmCommands slurm() const { return commands_in(scratch_.path()); }
  SbatchAnswer submit() const {
    const auto script = scratch_ / "x.sbatch";
    std::ofstream(script) << "#!/bin/bash\n";
    return slurm().submit(script, "/", {}, "n.s.S");
  }
  std::string said(const std::string& file) const { return file_text(scratch_ / file); }
  void play(const std::string& program, const std::string& script) const {
    fake(scratch_.path(), program, "cd '" + scratch_.path().string() + "'\n" + script);
  }

  Scratch scratch_;
};

TEST_F(Commands, SubmitReturnsTheIdAndPassesWordsAsTheyAre) {
  play("sbatch", R"(printf '%s\n' "$@" > words; echo '123;cluster')");
  const std::string script = (scratch_ / "$(id) x.sbatch").string();
  std::ofstream(script) << "#!/bin/bash\n";
  EXPECT_EQ(slurm().submit(script, "/a 'b", {"--dependency=afterany:1"}, "x").job, 123);
  EXPECT_EQ(said("words"), "--parsable\n--chdir=/a 'b\n--dependency=afterany:1\n" + script + "\n");
}

TEST_F(Commands, ARefusalIsOneOnlyIfSlurmIsMarkedAndTheJobIsNotThere) {
  play("squeue", "exit 0");
  play("sacct", "exit 0");
  play("sbatch", "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2\nexit 1");
  const SbatchAnswer answer = submit();
  EXPECT_EQ(answer.job, 0);
  EXPECT_TRUE(answer.is_refused);
  expect_parts(answer.why, {"Invalid account"});
  play("squeue", "case \"$*\" in *--name=n.s.S*) echo 77;; esac");
  EXPECT_EQ(submit().job, 77) << "it took the job all the same";
}

// What a site's wrapper or a busy controller makes of it.
TEST_F(Commands, AnAnswerThatIsNoBareNumberIsLookedUp) {
  const char* const kAnswers[] = {
      "echo '=== 2025 ==='; echo 'Welcome to login4'; echo 41",
      "echo 'Submitted batch job 41 on cluster naut'",
      "echo 'error: Socket timed out on send/recv operation' >&2; exit 1",
      "echo 'error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
      "echo 12; echo 13",
      "exit 0",
      "kill -9 $$",
      "echo 41; exit 3",
  };
  play("squeue", "case \"$*\" in *--name=n.s.S*) echo 41; echo 41;; esac");
  for (const char* answer : kAnswers) {
    play("sbatch", answer);
    EXPECT_EQ(submit().job, 41) << answer;
  }
}

TEST_F(Commands, WhatHasEndedIsFoundInAccounting) {
  play("squeue", "exit 0");
  play("sacct", "case \"$*\" in *--name=n.s.S*) echo '41_[0-3]'; echo 41_4;; esac");
  play("sbatch", "echo 'Connection reset by peer: connection lost' >&2; exit 1");
  EXPECT_EQ(submit().job, 41);
}

// Nothing may be sent again until Slurm says that nothing was.
TEST_F(Commands, AJobIsMissingOnlyIfItsListsCanBeRead) {
  const auto find = [&] { return slurm().find_job("n.s.S"); };
  play("squeue", "exit 0");
  play("sacct", "echo 'sacct: error: slurmdbd: Connection refused' >&2; exit 1");
  expect_error(ErrorKind::usage, {"sacct failed", "Connection refused", "try again"}, find);
  play("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  EXPECT_EQ(find(), 0);
  play("squeue", "echo 'the queue rests'");
  expect_error(ErrorKind::usage, {"squeue lists no jobs but \"the queue rests\""}, find);
}

TEST_F(Commands, AGreetingAroundTheNumberIsEnoughWhereNobodyListsJobs) {
  play("squeue", "exit 1");
  play("sbatch", "echo hello; echo '41;naut'");
  EXPECT_EQ(submit().job, 41);
}

TEST_F(Commands, NobodyKnows) {
  play("squeue", "exit 1");
  play("sbatch", "echo 'Zero Bytes were transmitted or received' >&2; exit 1");
  const SbatchAnswer answer = submit();
  EXPECT_EQ(answer.job, 0);
  EXPECT_FALSE(answer.is_refused);
}

TEST_F(Commands, WithoutSlurm) {
  const SlurmCommands none({{"PATH", scratch_.path().string()}});
  EXPECT_FALSE(none.has("sbatch"));
  expect_error(ErrorKind::usage, {"sbatch is not in PATH", "log in"},
               [&] { none.submit("x", "/", {}, "y"); });
  expect_error(ErrorKind::usage, {"sbatch is not in PATH"}, [&] { none.need("sbatch"); });
  expect_error(ErrorKind::usage, {"squeue", "not in PATH"}, [&] { ask_queue(none, {5}); });
  EXPECT_TRUE(ask_queue(none, {}).empty()) << "nothing was sent: nothing is asked";
}

TEST_F(Commands, OneThatHangsIsGivenUp) {
  play("squeue", "sleep 60");
  const CommandResult result = slurm().run({"squeue"}, 0.3);
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.complaint(), "it did not answer in time");
}

TEST_F(Commands, OnlyOurJobsOfTheQueue) {
  play("squeue", "echo '5_0|RUNNING|None'; echo '6_0|RUNNING|None'; echo '5_1|COMPLETED|None'");
  EXPECT_EQ(ask_queue(slurm(), {5}).size(), 1U);
}

TEST_F(Commands, HistoryFromSacct) {
  play("sacct",
       R"(printf '%s\n' "$@" > words; echo '5_0|FAILED|1:0|n1'; echo '7_0|FAILED|1:0|n1')");
  EXPECT_EQ(ask_history(slurm(), {5, 6}).size(), 1U);
  expect_parts(said("words"), {"-j\n5,6\n"});
}

TEST_F(Commands, HistoryWithoutAccounting) {
  play("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  play("scontrol", R"(if [ "$2" = config ]; then
    echo "JobCompType = jobcomp/filetxt"; echo "JobCompLoc = $PWD/completed"; exit; fi
    [ "$4" = 5 ] || { echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }
    echo 'JobId=8 ArrayJobId=5 ArrayTaskId=0 JobState=COMPLETED ExitCode=0:0 NodeList=n1')");
  std::ofstream(scratch_ / "completed")
      << "JobId=2 JobState=FAILED ArrayJobId=4 ArrayTaskId=1 NodeList=n2 ExitCode=9:0\n"
      << "JobId=3 JobState=FAILED ArrayJobId=99 ArrayTaskId=1 NodeList=n2 ExitCode=9:0\n";
  const ElementStates states = ask_history(slurm(), {4, 5});
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states.at({4, 1}).detail, "exit code 9:0, on n2");
  EXPECT_EQ(states.at({5, 0}).state, "COMPLETED");
}

TEST_F(Commands, EnergyByAccounting) {
  play("scontrol", "echo 'AcctGatherEnergyType = acct_gather_energy/pm_counters'");
  play("sacct",
       R"(printf '%s\n' "$@" > words
    printf '5_0|7200\n5_0.batch|7200\n5_1|3600\n5_2|\n5_3|0\n6|4294967294\nnonsense\n')");
  const auto energy = ask_energy(slurm(), {5, 6});
  ASSERT_TRUE(energy);
  EXPECT_EQ(energy->joules, 10800);
  EXPECT_EQ(energy->elements, 2U);
  EXPECT_EQ(energy->text(),
            "energy by Slurm (pm_counters): 3 Wh of 2 jobs, with setup, and with other jobs on "
            "shared nodes");
  expect_parts(said("words"), {"JobID,ConsumedEnergyRaw"});
  play("scontrol", "echo 'AcctGatherEnergyType = (null)'");
  EXPECT_FALSE(ask_energy(slurm(), {5, 6}));
  EXPECT_FALSE(ask_energy(slurm(), {}));
}

TEST_F(Commands, AUsersDefaultsDoNotReachThem) {
  play("squeue", "echo \"[$SQUEUE_FORMAT$SQUEUE_NAMES$SCANCEL_INTERACTIVE]\"");
  const SlurmCommands slurm({{"PATH", scratch_.path().string() + ":/usr/bin:/bin"},
                             {"SQUEUE_FORMAT", "%j"},
                             {"SQUEUE_NAMES", "x"},
                             {"SCANCEL_INTERACTIVE", "1"}});
  EXPECT_EQ(slurm.run({"squeue"}).out, "[]\n");
}

TEST_F(Commands, NoVariableOfTheShellWinsOverTheScript) {
  play("sbatch", "env | grep -E '^(SBATCH|SLURM_HINT)' | sort > variables; echo 5");
  const SlurmCommands slurm({{"PATH", scratch_.path().string() + ":/usr/bin:/bin"},
                             {"SBATCH_ACCOUNT", "mine"},
                             {"SBATCH_PARTITION", "debug"},
                             {"SBATCH_QOS", "low"},
                             {"SBATCH_CONSTRAINT", "a"},
                             {"SBATCH_REQUEUE", "1"},
                             {"SBATCH_EXPORT", "NONE"},
                             {"SLURM_HINT", "multithread"}});
  const auto script = scratch_ / "x.sbatch";
  std::ofstream(script) << "#!/bin/bash\n#SBATCH --partition=gpu\n#SBATCH -C b\n";
  EXPECT_EQ(slurm.submit(script, "/", {}, "n").job, 5);
  EXPECT_EQ(said("variables"), "SBATCH_ACCOUNT=mine\nSBATCH_QOS=low\n")
      << "what the script leaves to the user";
  EXPECT_EQ(slurm.overriding_variables(file_text(script)).size(), 5U);
}

}  // namespace
}  // namespace paceline
