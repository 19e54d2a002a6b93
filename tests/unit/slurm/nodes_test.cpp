#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "slurm/cluster_facts.h"
#include "slurm/study_view.h"
#include "tests/support/scratch.h"
#include "tests/unit/results/sample_record.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

// A study of which session J was submitted; a sweep on the login node was session L.
class NodesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Spec spec = parse_spec("s", R"({"name": "s", "workload": "mnist-cnn", "repeats": 2,
      "fixed": {"device": "cpu", "cpus_per_task": 1, "gpus": 2},
      "axes": {"backend": ["mpi"]}, "order": "sequential"})");
    plan_ = make_plan(std::move(spec), scratch_.path() / "s");
    const Submission submission = make_submission(plan_, site_with(""));
    Journal journal(plan_.study);
    const JobArray& array = submission.arrays.front();
    journal.planned("J", array, list_elements(plan_, resolve_points(plan_), array));
    journal.sent("J", array.name, 5);
  }

  Record put(int repeat, const std::string& session, int cpus, const std::string& cluster = "",
             const std::string& partition = "cpu") {
    Json json = sample_record({.gpus = 2, .session = session});
    json["study"] = "s";
    json["point"] = "backend=mpi";
    json["repeat"] = repeat;
    json["identity"] = "id-backend=mpi";
    json["provenance"]["data_hash"] = "data";
    json["provenance"]["machine"] = {{"cpus", cpus}, {"memory_bytes", cpus * 4e9}};
    if (!cluster.empty()) {
      json["provenance"]["allocation"] = {
          {"job", "7"}, {"cluster", cluster}, {"partition", partition}};
    }
    return read_record(Store(plan_.study).write("backend=mpi", repeat, json, ""));
  }

  Nodes nodes(const JobPlace& place = {}) const {
    return Nodes(Journal(plan_.study), load_store(plan_.study), place);
  }

  Scratch scratch_;
  StudyPlan plan_;
};

TEST_F(NodesTest, ALoginNodesRecordDoesNotCount) {
  const Record login = put(1, "L", 2);
  EXPECT_EQ(nodes().other_machine(login), "A CPU, 2 CPUs, 8 GB") << "and no node was ever seen";
  const Record job = put(2, "J", 64);
  EXPECT_EQ(nodes().other_machine(login), "A CPU, 2 CPUs, 8 GB");
  EXPECT_EQ(nodes().other_machine(job), "");
  EXPECT_EQ(nodes().counted(load_store(plan_.study)).records.size(), 1U);
}

TEST_F(NodesTest, ARecordOfALikeMachineCountsWhoeverMadeIt) {
  put(2, "J", 64);
  EXPECT_EQ(nodes().other_machine(put(1, "L", 64)), "");
  JobPlace place;
  place.node = Machine{"", "", 2, 0};
  EXPECT_EQ(nodes(place).other_machine(put(1, "L", 2)), "") << "as the profile says";
  EXPECT_EQ(nodes(place).other_machine(put(1, "J", 64)), "A CPU, 64 CPUs, 256 GB");
}

TEST_F(NodesTest, JobsOfThisClusterAndPartitionCount) {
  const JobPlace place{"saga", "cpu,big", {}};
  EXPECT_EQ(nodes(place).other_machine(put(1, "K", 64, "saga", "big")), "");
  EXPECT_NE(nodes(place).other_machine(put(1, "K", 8, "betzy", "cpu")), "");
  EXPECT_NE(nodes(place).other_machine(put(1, "K", 8, "saga", "gpu")), "");
  EXPECT_EQ(nodes().other_machine(put(1, "K", 8, "saga", "gpu")), "") << "nothing else is known";
}

TEST_F(NodesTest, StatusReportsWhatIsNotCounted) {
  put(1, "L", 2);
  put(2, "J", 64);
  const auto runs = view_study(Journal(plan_.study), load_store(plan_.study),
                               parse_squeue("5_0|PENDING|Priority\n"), parse_sacct(""));
  EXPECT_EQ(runs[0].phase, RunPhase::pending);
  EXPECT_EQ(runs[1].phase, RunPhase::done);
  const std::string line = "1 run of another machine (A CPU, 2 CPUs, 8 GB) is not counted";
  EXPECT_TRUE(contains(status_text(runs), "note: " + line)) << status_text(runs);
  EXPECT_EQ(status_json(runs)["not_counted"], Json::array({line}));
}

}  // namespace
}  // namespace paceline
