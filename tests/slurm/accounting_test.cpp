// On a cluster with slurmdbd and MaxArraySize 5: sacct's word, accounts, arrays that are split.
#include "tests/slurm/cluster.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

class SlurmAccounting : public OnCluster {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<Cluster>("accounting", "CLUSTER_MAX_ARRAY=5");
  }
};

TEST_F(SlurmAccounting, MaxArraySizeSplitsWithoutLoss) {
  write_site("site.json", R"("account": "science", "reference": false)");
  write("split.json", R"({"name": "split", "workload": "mnist-mlp", "repeats": 7,
    "fixed": {"device": "cpu", "cpus_per_task": 1, "input": "synthetic", "steps": 2,
              "evaluate": "none"},
    "axes": {"gpus": [1], "backend": ["self"]}})");
  const std::string submit =
      "paceline submit split.json --site site.json --results results --yes --no-collect";
  ASSERT_EQ(shell("scontrol update nodename=n[1-4] state=drain reason=wait").code, 0);
  expect_parts(expect_success(shell(submit)).out, {"2 arrays, 7 elements"});
  // One is taken away while all of them wait.
  ASSERT_EQ(shell("scancel $(squeue -h -r -o %i | head -n 1)").code, 0);
  expect_parts(shell("paceline status results/split").out, {"6 pending, 1 failed"});
  ASSERT_EQ(shell("scontrol update nodename=n[1-4] state=resume").code, 0);
  wait_for_the_queue();
  EXPECT_EQ(completed(study("split")).size(), 6U);
  const Ran status = shell("paceline status results/split --json");
  EXPECT_EQ(status.code, 1);
  expect_parts(status.out, {"\"done\": 6", "cancelled before the start"});
  EXPECT_EQ(shell(submit).code, 0);
  wait_for_the_queue();
  expect_all_once(study("split"), 7);
}

TEST_F(SlurmAccounting, SacctReportsWhatBecameOfARun) {
  write_site("site.json", R"("account": "science", "reference": false)");
  write("long.json", R"({"name": "long", "workload": "mnist-mlp",
    "fixed": {"device": "cpu", "cpus_per_task": 1, "input": "synthetic", "steps": 1000000,
              "evaluate": "none"},
    "axes": {"gpus": [1], "backend": ["self"]}})");
  expect_success(
      shell("paceline submit long.json --site site.json --results results --yes --no-collect"));
  ASSERT_TRUE(soon([&] { return !shell("squeue -h -t R").out.empty(); }));
  ASSERT_EQ(shell("scancel $(squeue -h -r -o %i)").code, 0);
  wait_for_the_queue();
  expect_parts(shell("paceline status results/long").out, {"failed: CANCELLED"});
  EXPECT_TRUE(soon([&] { return contains(shell("sacct -n -P -X -o State").out, "CANCELLED"); }));
  const Ran status = shell("paceline status results/long");
  EXPECT_EQ(status.code, 1);
  expect_parts(status.out, {"failed: CANCELLED"});
}

TEST_F(SlurmAccounting, AWrongAccountIsRefusedInSlurmsWordsAndOurs) {
  write_site("wrong.json", R"("account": "nobodys")");
  write("tiny.json", R"({"name": "tiny", "workload": "mnist-mlp", "axes": {"gpus": [1]}})");
  const Ran refused = shell("paceline submit tiny.json --site wrong.json --results results --yes");
  EXPECT_EQ(refused.code, 64) << refused.out;
  expect_parts(refused.out, {"nvalid account", "check account, partition, qos"});
}

}  // namespace
}  // namespace paceline
