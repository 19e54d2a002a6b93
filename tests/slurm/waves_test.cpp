// A study larger than the queue takes at a time: MaxArraySize 4, MaxSubmitJobs 6 of the account,
// which this Slurm enforces.
#include "tests/slurm/cluster.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

class SlurmWaves : public OnCluster {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<Cluster>("accounting", "CLUSTER_MAX_ARRAY=4 CLUSTER_MAX_SUBMIT=6");
  }
};

TEST_F(SlurmWaves, EveryRunIsMadeOnceInAsManyWavesAsItTakes) {
  write_site("site.json", R"("account": "science", "reference": false)");
  write("waves.json", R"({"name": "waves", "workload": "mnist-mlp", "repeats": 7,
    "fixed": {"device": "cpu", "cpus_per_task": 1, "input": "synthetic", "steps": 2,
              "evaluate": "none"},
    "axes": {"gpus": [1], "backend": ["self"], "seed": [1, 2]}})");
  const std::string submit = "paceline submit waves.json --site site.json --results results --yes";
  ASSERT_EQ(shell("scontrol update nodename=n[1-4] state=drain reason=wait").code, 0);
  EXPECT_NE(shell("sbatch -A science --array=0-3 --wrap=true; sbatch -A science --array=0-3 "
                  "--wrap=true")
                .code,
            0)
      << "Slurm itself takes no more than six";
  ASSERT_EQ(shell("scancel -u root").code, 0);
  ASSERT_TRUE(soon([&] { return shell("squeue -h").out.empty(); }));

  expect_parts(expect_success(shell(submit)).out,
               {"2 arrays, 6 elements", "8 runs are left for a later call",
                "MaxSubmitJobs of account science is 6"});
  expect_parts(expect_success(shell(submit)).out, {"0 arrays, 0 elements"});
  const Ran waiting = shell("paceline status results/waves");
  expect_parts(waiting.out, {"0 of 14 runs done, 6 pending, 8 not submitted",
                             "note: 8 runs wait for the next paceline submit"});

  ASSERT_EQ(shell("scontrol update nodename=n[1-4] state=resume").code, 0);
  expect_success(shell(submit + " --wait --every 10"));
  wait_for_the_queue();
  expect_all_once(study("waves"), 14);
  EXPECT_EQ(load_store(study("waves")).records.size(), 14U) << "none was made twice";
  expect_parts(expect_success(shell("paceline status results/waves")).out, {"14 of 14 runs done"});
}

}  // namespace
}  // namespace paceline
