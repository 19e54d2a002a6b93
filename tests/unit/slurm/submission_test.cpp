#include "slurm/submission.h"

#include <gtest/gtest.h>

#include "engine/core/text.h"
#include "slurm/study_status.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

using testing::contains;
using testing::text_of;

class SubmissionTest : public ::testing::Test {
 protected:
  std::vector<std::string> send(const Site& site, bool collect = false) {
    const Submission submission = testing::submission_of(plan_, site);
    Journal journal(plan_.study);
    std::vector<std::string> told;
    send_submission(submission, site, plan_, testing::resolved_of(plan_), journal,
                    testing::commands_in(scratch_.path()), collect,
                    [&](const std::string& line) { told.push_back(line); });
    return told;
  }

  // Answers 1, 2, ... and keeps what it was told.
  void play_sbatch(int most = 100) {
    testing::fake(scratch_.path(), "sbatch",
                  "cd '" + scratch_.path().string() +
                      "'\necho \"$*\" >> calls\nn=$(grep -c . calls)\n[ $n -le " +
                      std::to_string(most) +
                      " ] || { echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1; }\n"
                      "echo $n");
  }

  Scratch scratch_;
  StudyPlan plan_ = testing::plan_of(parse_spec("s", testing::kFourPoints), scratch_.path() / "s");
};

TEST_F(SubmissionTest, SendsEveryArrayWithItsFiles) {
  play_sbatch();
  const auto told = send(testing::site_with(""), true);
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0], "job 1: 1n1t2c (1 node, 1 task of 2 CPUs), 6 elements");
  EXPECT_EQ(told[2], "job 3 collects the study after them");
  const auto folder = plan_.study / "slurm" / "S";
  for (const char* name : {"1n1t2c", "1n2t2c"}) {
    const std::string points = text_of(folder / (std::string(name) + ".points"));
    EXPECT_EQ(std::count(points.begin(), points.end(), '\n'), 6);
    EXPECT_TRUE(contains(text_of(folder / (std::string(name) + ".sbatch")), "--array=0-5\n"));
  }
  const std::string calls = text_of(scratch_.path() / "calls");
  EXPECT_TRUE(contains(calls, "--dependency=afterany:1:2")) << calls;
  EXPECT_TRUE(contains(text_of(folder / "collect.sbatch"), "collect "));
  EXPECT_EQ(Journal(plan_.study).jobs(), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(SubmissionTest, ARefusedArrayLeavesThoseBeforeIt) {
  play_sbatch(1);
  expect_error(ErrorKind::usage, {"QOSMaxSubmitJobPerUserLimit", "check account", "site.json"},
               [&] { send(testing::site_with("")); });
  const Journal journal(plan_.study);
  EXPECT_EQ(journal.jobs(), std::vector<std::int64_t>{1});
  EXPECT_TRUE(journal.arrays()[1].refused);
}

TEST_F(SubmissionTest, ARefusedArrayLeavesThoseBehindItKnown) {
  play_sbatch(0);
  expect_error(ErrorKind::usage, {"QOSMaxSubmitJobPerUserLimit"},
               [&] { send(testing::site_with("")); });
  const Journal journal(plan_.study);
  ASSERT_EQ(journal.arrays().size(), 2U);
  EXPECT_TRUE(journal.arrays()[0].refused);
  EXPECT_FALSE(journal.arrays()[1].refused || journal.arrays()[1].called);
  EXPECT_EQ(journal.arrays()[1].job, 0);
  const auto runs = view_study(journal, {}, {}, {});
  const std::string status = status_text(runs);
  EXPECT_EQ(runs_in_phase(runs, RunPhase::unsent), 12U);
  EXPECT_TRUE(contains(status, "not submitted: Slurm refused its array")) << status;
  EXPECT_TRUE(contains(status, "not submitted: submit stopped before its array")) << status;
  EXPECT_FALSE(contains(status, "not known"));
}

TEST_F(SubmissionTest, WhatCannotBeAskedForStopsItBeforeAnythingIsSent) {
  play_sbatch();
  Spec spec = parse_spec("s", testing::kFourPoints);
  spec.fixed.set("device", std::string("cuda"));
  plan_ = testing::plan_of(std::move(spec), plan_.study);
  expect_error(ErrorKind::usage, {"no form for them"}, [&] { send(testing::site_with("")); });
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "calls"));
  EXPECT_TRUE(Journal(plan_.study).empty());
}

TEST_F(SubmissionTest, AnArrayThatWasBeingSentIsFoundByItsName) {
  {
    const Submission submission = testing::submission_of(plan_, testing::site_with(""));
    Journal journal(plan_.study);
    const JobArray& array = submission.arrays[0];
    journal.planned("S", array, elements_of(plan_, testing::resolved_of(plan_), array));
    journal.sending("S", array.name);
  }
  testing::fake(scratch_.path(), "squeue",
                "case \"$*\" in *--name=1n1t2c.s.S*) echo 42; echo 42;; esac");
  Journal journal(plan_.study);
  find_cut_off(journal, testing::setup_of(plan_, "T"), testing::commands_in(scratch_.path()));
  EXPECT_EQ(Journal(plan_.study).jobs(), std::vector<std::int64_t>{42});
}

TEST_F(SubmissionTest, ARunThatWritesCheckpointsGoesOnFromThem) {
  const ScriptSetup setup = testing::setup_of(plan_);
  EXPECT_FALSE(contains(points_line(plan_, {0, 2}, setup), "--resume"));
  Spec spec = parse_spec("s", testing::kFourPoints);
  spec.fixed.set("checkpoint_every", std::string("1epochs"));
  plan_ = testing::plan_of(std::move(spec), plan_.study);
  EXPECT_TRUE(contains(points_line(plan_, {0, 2}, setup),
                       "/s/slurm/runs/gpus=1,backend=mpi/2\",\"--resume=latest\"]"));
}

TEST_F(SubmissionTest, TheTableOfCost) {
  const Submission submission = testing::submission_of(plan_, testing::site_with(""));
  const std::string text = submission_text(submission, plan_);
  EXPECT_TRUE(contains(text, "s: 2 arrays, 12 elements: at most 0.0 GPU-hours, 36.0 CPU-hours"))
      << text;
  EXPECT_TRUE(contains(text, "1n2t2c")) << text;
  EXPECT_TRUE(contains(text, "site profile")) << text;
}

// 574 and 332 s are the published rows of 1 and 2 GPUs on so many CPUs.
TEST_F(SubmissionTest, TheCostByPublishedTimes) {
  const StoreContent published = load_store(PACELINE_SOURCE_DIR "/results/reference");
  const auto text_of_study = [&](const std::string& workload, int gpus, int cpus) {
    plan_ = testing::plan_of(
        parse_spec("s", R"({"name": "s", "workload": ")" + workload +
                            R"(", "fixed": {"device": "cuda", "backend": "mirrored", "gpus": )" +
                            std::to_string(gpus) + R"(}, "axes": {"cpus_per_task": [)" +
                            std::to_string(cpus) + "]}, \"repeats\": 3}"));
    const Site site = testing::site_with(R"("gpus": {"form": "gres"})");
    return submission_text(testing::submission_of(plan_, site, {}, 1001, &published), plan_);
  };
  const std::string one = text_of_study("resnet50-cassava", 1, 2);
  EXPECT_TRUE(contains(one,
                       "3 elements: about 0.5 GPU-hours, 1.0 CPU-hours (by published times), "
                       "at most 3.0 and 6.0;"))
      << one;
  const std::string two = text_of_study("resnet50-cassava", 2, 8);
  EXPECT_TRUE(contains(two, "about 0.6 GPU-hours")) << two;
  for (const std::string& other :
       {text_of_study("mnist-mlp", 1, 2), text_of_study("resnet50-cassava", 5, 8)}) {
    EXPECT_TRUE(contains(other, "elements: at most ")) << "nobody published that: " << other;
  }
}

}  // namespace
}  // namespace paceline
