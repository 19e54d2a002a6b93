#include "slurm/commands.h"

#include <gtest/gtest.h>

#include "slurm/job_energy.h"
#include "slurm/job_states.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

using testing::commands_in;
using testing::fake;

class Commands : public ::testing::Test {
 protected:
  SlurmCommands slurm() const { return commands_in(scratch_.path()); }
  std::string said(const std::string& file) const {
    return testing::text_of(scratch_.path() / file);
  }
  void play(const std::string& program, const std::string& script) const {
    fake(scratch_.path(), program, "cd '" + scratch_.path().string() + "'\n" + script);
  }

  Scratch scratch_;
};

TEST_F(Commands, SubmitReturnsTheIdAndPassesWordsAsTheyAre) {
  play("sbatch", R"(printf '%s\n' "$@" > words; echo '123;cluster')");
  EXPECT_EQ(slurm().submit("/a b/$(id).sbatch", "/a 'b", {"--dependency=afterany:1"}, "x"), 123);
  EXPECT_EQ(said("words"),
            "--parsable\n--chdir=/a 'b\n--dependency=afterany:1\n/a b/$(id).sbatch\n");
}

TEST_F(Commands, ARefusalHasSlurmsWordsAndOurs) {
  play("sbatch", "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2\nexit 1");
  expect_error(ErrorKind::usage,
               {"sbatch refused it", "Invalid account", "x.sbatch", "check the account"},
               [&] { slurm().submit("x.sbatch", "/", {}, "check the account"); });
  play("sbatch", "echo nonsense");
  expect_error(ErrorKind::usage, {"sbatch refused it", "nonsense"},
               [&] { slurm().submit("x.sbatch", "/", {}, "check"); });
}

TEST_F(Commands, WithoutSlurm) {
  const SlurmCommands none({{"PATH", scratch_.path().string()}});
  EXPECT_FALSE(none.has("sbatch"));
  expect_error(ErrorKind::usage, {"sbatch is not in PATH", "log in"},
               [&] { none.submit("x", "/", {}, "y"); });
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
  EXPECT_NE(said("words").find("-j\n5,6\n"), std::string::npos);
}

TEST_F(Commands, HistoryWithoutAccounting) {
  play("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  play("scontrol", R"(if [ "$2" = config ]; then
    echo "JobCompType = jobcomp/filetxt"; echo "JobCompLoc = $PWD/completed"; exit; fi
    [ "$4" = 5 ] || { echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }
    echo 'JobId=8 ArrayJobId=5 ArrayTaskId=0 JobState=COMPLETED ExitCode=0:0 NodeList=n1')");
  std::ofstream(scratch_.path() / "completed")
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
  EXPECT_NE(said("words").find("JobID,ConsumedEnergyRaw"), std::string::npos);
  play("scontrol", "echo 'AcctGatherEnergyType = (null)'");
  EXPECT_FALSE(ask_energy(slurm(), {5, 6}));
  EXPECT_FALSE(ask_energy(slurm(), {}));
}

TEST_F(Commands, AUsersDefaultsDoNotReachThem) {
  play("squeue", "echo \"[$SQUEUE_FORMAT$SBATCH_ARRAY_INX]\"");
  const SlurmCommands slurm({{"PATH", scratch_.path().string() + ":/usr/bin:/bin"},
                             {"SQUEUE_FORMAT", "%j"},
                             {"SBATCH_ARRAY_INX", "0"}});
  EXPECT_EQ(slurm.run({"squeue"}).out, "[]\n");
}

}  // namespace
}  // namespace paceline
