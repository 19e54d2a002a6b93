// What befalls jobs on a cluster, and takes minutes to happen: time limits, lost nodes and links.
#include <nlohmann/json.hpp>

#include "engine/facts/rank.h"
#include "tests/slurm/cluster.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

class SlurmFaults : public OnCluster {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<Cluster>("", "CLUSTER_NODE_TIMEOUT=5");
  }

  // A study of one shape on synthetic data; `fixed` and `axes` are keys of its spec.
  void write_spec(const std::string& name, const std::string& fixed, const std::string& axes,
                  int repeats = 1) const {
    write(name + ".json",
          R"({"name": ")" + name + R"(", "workload": "mnist-mlp", "repeats": )" +
              std::to_string(repeats) +
              R"(, "fixed": {"device": "cpu", "cpus_per_task": 1, "input": "synthetic",
              "evaluate": "none", )" +
              fixed + "}, \"axes\": {" + axes + "}}");
  }

  Ran submit(const std::string& name, const std::string& more = "--yes") const {
    return shell("paceline submit " + name + ".json --site " + name +
                 ".site --results results --no-collect " + more);
  }

  std::string cluster(const std::string& words) const {
    const std::string verb = words.substr(0, words.find(' '));
    return shell("'" PACELINE_SOURCE_DIR "/tests/slurm/cluster' " + verb + " '" +
                 cluster_->folder() + "'" + words.substr(verb.size()))
        .out;
  }
};

TEST_F(SlurmFaults, ATimeLimitIsNamedAndDoubled) {
  write_site("limit.site", R"("reference": false, "time": {"minutes": 1})");
  write_spec("limit", R"("steps": 1000000)", R"("gpus": [1], "backend": ["self"])");
  ASSERT_EQ(submit("limit").code, 0);
  wait_for_the_queue();
  const Ran status = shell("paceline status results/limit");
  expect_parts(status.out, {"TIMEOUT after 1 min"});
  expect_parts(submit("limit", "--dry-run").out, {" 0:02:00 "});
  // What Slurm forgets, a record keeps.
  EXPECT_EQ(shell("paceline collect results/limit").code, 1);
  EXPECT_EQ(load_store(study("limit")).records.front()->status, "timeout");
}

TEST_F(SlurmFaults, TheSignalBeforeTheLimitReachesTheRun) {
  write_site("signal.site", R"("reference": false, "time": {"minutes": 2, "signal_seconds": 50})");
  write_spec("signal", R"("steps": 1000000)", R"("gpus": [2], "backend": ["mpi"])");
  ASSERT_EQ(submit("signal").code, 0);
  wait_for_the_queue();
  const auto records = load_store(study("signal")).records;
  ASSERT_EQ(records.size(), 1U) << "the script lived on to write it";
  EXPECT_EQ(records.front()->status, "timeout");
  expect_parts(records.front()->reason, {"time limit of 2 min at step "});
}

TEST_F(SlurmFaults, ARunThatSavedItselfGoesOnInItsJobsNextTurn) {
  write_site("saved.site", R"("reference": false, "requeue": true)");
  write_spec("saved", "\"steps\": " + steps_in(20) + R"(, "checkpoint_every": "100000steps")",
             R"("gpus": [2], "backend": ["mpi"])");
  ASSERT_EQ(submit("saved").code, 0);
  ASSERT_TRUE(trains("saved"));
  shell("scancel --batch --signal=USR1 $(squeue -h -r -o %A)");
  wait_for_the_queue();
  expect_parts(shell("cat results/saved/slurm/*/*.log").out, {"stopped on request"});
  expect_all_once(study("saved"), 1);
  for (const Record& record : load_store(study("saved")).records) {
    if (record->completed()) {
      EXPECT_TRUE(record->flags.resumed);
    }
  }
}

TEST_F(SlurmFaults, ANodeThatDiesPutsItsRunBackIntoTheQueue) {
  write_site("node.site", R"("reference": false, "requeue": true)");
  write_spec("node", "\"steps\": " + steps_in(30), R"("gpus": [2], "backend": ["mpi"])");
  ASSERT_EQ(submit("node").code, 0);
  ASSERT_TRUE(trains("node"));
  std::string node = shell("squeue -h -t R -o %N | tr -d '\\n'").out;
  cluster("kill " + node);
  EXPECT_TRUE(soon([&] { return contains(shell("sinfo -h -N -o %N:%T").out, node + ":down"); }));
  cluster("revive " + node);
  wait_for_the_queue();
  if (completed(study("node")).empty()) {
    EXPECT_EQ(submit("node").code, 0);
    wait_for_the_queue();
  }
  expect_all_once(study("node"), 1);
}

TEST_F(SlurmFaults, ACutLink) {
  if (!cluster_->has_several_hosts())
    GTEST_SKIP() << "no right to make network namespaces: all nodes are one host";
  write_site("link.site", R"("reference": false, "requeue": true)");
  write_spec("link", "\"nodes\": 2, \"steps\": " + steps_in(15),
             R"("gpus": [2], "backend": ["ring"])");
  ASSERT_EQ(submit("link").code, 0);
  ASSERT_TRUE(trains("link"));
  const std::string node =
      shell("scontrol show hostnames $(squeue -h -t R -o %N) | tail -n 1 | tr -d '\\n'").out;
  cluster("link " + node + " down");
  EXPECT_TRUE(soon([&] { return contains(shell("sinfo -h -N -o %N:%T").out, node + ":down"); }));
  cluster("link " + node + " up");
  wait_for_the_queue();
  if (completed(study("link")).empty()) {
    expect_success(submit("link"));
    wait_for_the_queue();
  }
  expect_all_once(study("link"), 1);
}

// A ring of n ranks sends 2 (n - 1) / n of the gradients over each link.
TEST_F(SlurmFaults, ExposedCommunicationFollowsTheLinks) {
  if (!cluster_->has_several_hosts())
    GTEST_SKIP() << "no right to make network namespaces: all nodes are one host";
  write_spec("rate", R"("steps": 6, "nodes": 2, "overlap": false)",
             R"("gpus": [2], "backend": ["ring"])");
  for (const double megabits : {100.0, 25.0}) {
    const std::string name = "rate" + std::to_string(static_cast<int>(megabits));
    for (const char* node : {"n1", "n2", "n3", "n4"}) {
      cluster("link " + std::string(node) + " " + std::to_string(static_cast<int>(megabits)) +
              "mbit");
    }
    write_site("rate.site", R"("reference": false)");
    expect_success(shell("paceline submit rate.json --site rate.site --results " + name +
                         " --yes --no-collect"));
    wait_for_the_queue();
    const auto records = load_store(study("rate", name)).records;
    ASSERT_EQ(records.size(), 1U);
    ASSERT_TRUE(records[0]->completed()) << records[0]->reason;
    const double bytes = 4 * records[0]->plan.parameter_count.value_or(0);
    const double steps = records[0]->throughput->steps.value_or(1);
    const double seconds = records[0]->each_rank->at(0).phases->communication / steps;
    const double bound = bytes / (megabits * 1e6 / 8);
    EXPECT_GT(seconds, 0.8 * bound) << megabits;
    EXPECT_LT(seconds, 2.5 * bound) << megabits;
  }
}

TEST_F(SlurmFaults, TwoHundredTrivialElements) {
  write_site("many.site", R"("reference": false)");
  write_spec("many", R"("steps": 1, "train_limit": 128, "batch_per_replica": 64)",
             R"("gpus": [1], "backend": ["self"])", 200);
  expect_parts(expect_success(submit("many")).out, {"1 array, 200 elements"});
  wait_for_the_queue();
  wait_for_the_queue();
  expect_all_once(study("many"), 200);
  EXPECT_EQ(shell("paceline collect results/many").code, 0);
}

}  // namespace
}  // namespace paceline
