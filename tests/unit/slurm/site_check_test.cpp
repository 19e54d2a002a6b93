#include <gtest/gtest.h>

#include "slurm/site.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

using testing::fake;
using testing::site_with;

class SiteCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    fake(scratch_.path(), "sbatch", "echo 'slurm 22.05.8'");
    fake(scratch_.path(), "scontrol", "echo 'MaxArraySize            = 1001'");
    fake(scratch_.path(), "sinfo",
         "echo 'cpu|(null)'; echo 'gpu|gpu:v100:4'; echo 'gpu|gpu:a100:4(S:0-1)'");
    fake(scratch_.path(), "srun",
         "echo 'MPI plugin types are...' >&2; echo '  pmix' >&2; echo ' none' >&2");
  }

  std::string findings(const std::string& keys) const {
    std::string text;
    for (const SiteFinding& finding :
         check_site(site_with(keys), testing::commands_in(scratch_.path())).findings) {
      text += finding.what + "; " + finding.cure + (finding.blocks ? " (blocks)\n" : "\n");
    }
    return text;
  }

  Scratch scratch_;
};

TEST_F(SiteCheck, AClusterAsItIsDescribed) {
  EXPECT_EQ(findings(R"("partition": "gpu", "gpus": {"form": "gres", "type": "a100"})"), "");
  EXPECT_EQ(findings(R"("partition": "cpu,gpu")"), "");
  const SiteReport report = check_site(site_with(""), testing::commands_in(scratch_.path()));
  std::string facts;
  for (const auto& [name, text] : report.facts) facts += name + ": " + text + "\n";
  expect_parts(facts, {"Slurm: slurm 22.05.8\n", "MaxArraySize: 1001\n", "partitions: cpu, gpu\n"});
}

TEST_F(SiteCheck, WhatDoesNotFit) {
  EXPECT_TRUE(contains(findings(R"("partition": "gpus")"),
                       "there is no partition gpus; did you mean \"gpu\"? (blocks)"));
  EXPECT_TRUE(contains(findings(R"("partition": "cpu", "gpus": {"form": "gres"})"), "no GPUs"));
  EXPECT_TRUE(contains(findings(R"("partition": "gpu", "gpus": {"form": "gpus", "type": "h100"})"),
                       "no GPUs of type h100 there: gpu:v100:4, gpu:a100:4"));
  EXPECT_TRUE(contains(findings(R"("array": {"max_size": 5000})"), "Slurm's MaxArraySize 1001"));
  EXPECT_TRUE(contains(findings(R"("launcher_options": ["--mpi=cray_shasta"])"),
                       "no MPI of kind cray_shasta"));
  EXPECT_TRUE(contains(findings(R"("data": "/no/such/data")"), "data /no/such/data is not there"));
  EXPECT_EQ(findings(R"("data": "$SCRATCH/data")"), "") << "only a job knows";
}

TEST_F(SiteCheck, NodesThatHaveOtherSizes) {
  fake(scratch_.path(), "sinfo",
       "case \"$*\" in *%Y*) echo 'gpu|2|20|80|gpu:v100:4';; *) echo 'gpu|gpu:v100:4';; esac");
  EXPECT_EQ(findings(R"("cores_per_node": 40, "cpus_per_node": 80, "gpus_per_node": 4)"), "");
  EXPECT_EQ(findings(R"("cores_per_node": 20, "gpus_per_node": 8)"),
            "cores_per_node is 20, and Slurm reports 40; correct it, or leave it out: then Slurm "
            "is asked\ngpus_per_node is 8, and Slurm reports 4; correct it, or leave it out: then "
            "Slurm is asked (blocks)\n");
}

TEST_F(SiteCheck, NothingFollowsFromAnAnswerThatDidNotCome) {
  for (const char* program : {"scontrol", "sinfo", "srun"}) {
    fake(scratch_.path(), program, "echo 'Unable to contact slurm controller' >&2; exit 1");
  }
  EXPECT_EQ(findings(R"("partition": "gpu", "gpus": {"form": "gres"}, "cores_per_node": 4)"),
            "slurmctld does not answer; try again later (blocks)\n");
}

TEST_F(SiteCheck, WithoutSlurm) {
  std::filesystem::remove(scratch_ / "sbatch");
  const SlurmCommands none({{"PATH", scratch_.path().string()}});
  const SiteReport report = check_site(site_with(""), none);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_TRUE(report.findings[0].blocks);
}

}  // namespace
}  // namespace paceline
