#include "slurm/cluster_facts.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

class ClusterFacts : public ::testing::Test {
 protected:
  void SetUp() override {
    fake(scratch_.path(), "squeue", "echo 5_1; echo 5_2; case \"$*\" in *all*) echo 4; esac");
    fake(scratch_.path(), "scontrol",
         "echo 'MaxJobCount             = 10000'; "
         "echo 'AccountingStorageEnforce = associations,limits'");
    fake(scratch_.path(), "sacctmgr",
         "case \"$*\" in *assoc*) echo 'art||3|'; echo 'science||8|fast';; "
         "*name=fast*) echo 'fast|6';; *) echo 'normal|';; esac");
  }

  QueueRoom room(const std::string& keys, std::size_t wanted = 20) const {
    return ask_queue_room(site_with(keys), commands_in(scratch_.path()), wanted);
  }

  // Cores, CPUs and GPUs.
  std::array<int, 3> nodes(const std::string& keys) const {
    const NodeCounts facts = count_nodes(site_with(keys), commands_in(scratch_.path()));
    return {facts.cores, facts.cpus, facts.gpus};
  }

  Scratch scratch_;
};

TEST_F(ClusterFacts, TheLeastLimitOfAccountQosAndProfile) {
  const QueueRoom account = room(R"("account": "science", "qos": "normal")");
  EXPECT_EQ(account.elements, 6U);
  EXPECT_EQ(account.most, 8U);
  EXPECT_EQ(account.by, "MaxSubmitJobs of account science is 8");
  const QueueRoom qos = room(R"("account": "science")");
  EXPECT_EQ(qos.elements, 4U) << "by the account's default QOS";
  EXPECT_EQ(qos.by, "MaxSubmitJobsPerUser of QOS fast is 6");
  const QueueRoom profile = room(R"("account": "science", "array": {"max_submit": 3})");
  EXPECT_EQ(profile.elements, 1U) << "all that the user has in the queue counts";
  EXPECT_EQ(profile.by, "array.max_submit is 3");
}

TEST_F(ClusterFacts, LimitsThatNobodyEnforcesAreNone) {
  fake(scratch_.path(), "scontrol", "echo 'AccountingStorageEnforce = associations'");
  EXPECT_FALSE(room(R"("account": "science")").is_known());
  fake(scratch_.path(), "scontrol", "exit 1");
  fake(scratch_.path(), "squeue", "exit 1");
  EXPECT_FALSE(room("").is_known());
}

TEST_F(ClusterFacts, MaxJobCountIsThatOfAllJobs) {
  fake(scratch_.path(), "scontrol", "echo 'MaxJobCount = 10'");
  EXPECT_EQ(room("").elements, 6U) << "of ten three are there, and one is kept free";
  EXPECT_FALSE(room("", 0).is_known());
}

TEST_F(ClusterFacts, WhatARefusalIsAbout) {
  EXPECT_TRUE(is_refused_for_now("sbatch: error: QOSMaxSubmitJobPerUserLimit"));
  EXPECT_TRUE(is_refused_for_now("sbatch: error: AssocMaxSubmitJobLimit; Job violates accounting"));
  EXPECT_FALSE(is_refused_for_now("invalid partition specified: nope"));
  EXPECT_FALSE(is_refused_for_now("QOSMaxWallDurationPerJobLimit"));
}

TEST_F(ClusterFacts, WhatTheNodesOfThePartitionHave) {
  using Counts = std::array<int, 3>;
  fake(scratch_.path(), "sinfo",
       "case \"$*\" in *'-p gpu'*) echo 'gpu|2|24|48|gpu:v100:4(S:0-1),nvme:1'; "
       "echo 'gpu|2|32|128|gpu:2';; "
       "*) echo 'cpu*|2|64|256|(null)'; echo 'gpu|2|24|48|gpu:8';; esac");
  EXPECT_EQ(nodes(""), (Counts{128, 256, 0})) << "of the default partition";
  EXPECT_EQ(nodes(R"("partition": "gpu")"), (Counts{48, 128, 4}))
      << "cores of the smallest, CPUs and GPUs that some node has";
  fake(scratch_.path(), "sinfo", "echo 'gpu|2|4|8|gpu:a100:2,gpu:mig:1'");
  EXPECT_EQ(nodes(""), (Counts{8, 8, 3}));
  fake(scratch_.path(), "sinfo", "echo 'sinfo: error' >&2; exit 1");
  EXPECT_EQ(nodes(""), (Counts{0, 0, 0}));
}

}  // namespace
}  // namespace paceline
