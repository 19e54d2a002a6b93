#include "slurm/study_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"
#include "tests/unit/results/sample_record.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Two points on one shape, three repeats: an array of six, job 5.
class StudyView : public ::testing::Test {
 protected:
  void SetUp() override {
    Spec spec = parse_spec("s", R"({"name": "s", "workload": "mnist-cnn", "repeats": 3,
      "fixed": {"device": "cpu", "cpus_per_task": 1, "gpus": 2},
      "axes": {"backend": ["mpi", "gloo"]}, "order": "sequential"})");
    plan_ = make_plan(std::move(spec), scratch_.path() / "s");
    send("S", 5);
  }

  // Job 0: Slurm did not answer; -1: it was not asked.
  void send(const std::string& session, std::int64_t job) {
    const Submission submission = make_submission(plan_, site_with(""));
    const JobArray& array = submission.arrays.front();
    Journal journal(plan_.study);
    journal.planned(session, array, list_elements(plan_, resolve_points(plan_), array));
    if (job >= 0) journal.sending(session, array.name);
    if (job > 0) journal.sent(session, array.name, job);
  }

  void record(const std::string& backend, int repeat, const std::string& status,
              const std::string& reason = "", const std::string& data = "data") {
    SampleRun run;
    run.gpus = 2;
    run.backend = backend;
    run.session = "S";
    Json json = sample_record(run);
    json["study"] = "s";
    json["point"] = "backend=" + backend;
    json["status"] = status;
    json["reason"] = reason;
    json["identity"] = "id-backend=" + backend;
    json["provenance"]["data_hash"] = data;
    Store(plan_.study).write("backend=" + backend, repeat, json, "");
  }

  std::vector<RunView> view(const std::string& queue, const std::string& history) const {
    return view_study(Journal(plan_.study), load_store(plan_.study), parse_squeue(queue),
                      parse_sacct(history));
  }

  Scratch scratch_;
  StudyPlan plan_;
};

TEST_F(StudyView, RecordsFirstThenSlurm) {
  record("mpi", 1, "completed");
  record("mpi", 2, "failed", "rank 1 was killed");
  const auto runs = view("5_[3-4]|PENDING|Resources\n5_2|RUNNING|None\n",
                         "5_0|FAILED|1:0|n1\n5_1|FAILED|71:0|n1\n5_5|TIMEOUT|0:0|n2\n");
  ASSERT_EQ(runs.size(), 6U);
  EXPECT_EQ(runs[0].phase, RunPhase::done) << "whatever Slurm says";
  EXPECT_EQ(runs[1].phase, RunPhase::failed);
  EXPECT_EQ(runs[1].why, "rank 1 was killed");
  EXPECT_EQ(runs[2].phase, RunPhase::running);
  EXPECT_EQ(runs[3].phase, RunPhase::pending);
  EXPECT_EQ(runs[4].why, "Resources");
  EXPECT_EQ(runs[5].phase, RunPhase::failed);
  EXPECT_TRUE(runs[5].timed_out);
  expect_parts(runs[5].why, {"TIMEOUT after 60 min (5_5)"});
}

TEST_F(StudyView, ACompletedJobIsNoRecord) {
  const auto runs = view("", "5_0|COMPLETED|0:0|n1\n");
  EXPECT_EQ(runs[0].phase, RunPhase::failed);
  expect_parts(runs[0].why, {"left no record"});
  expect_parts(runs[1].why, {"5_1 left no record, and Slurm knows nothing"});
}

TEST_F(StudyView, ARecordOfOtherDataIsNotThisRuns) {
  record("mpi", 1, "completed", "", "other");
  EXPECT_EQ(view("", "")[0].phase, RunPhase::failed);
}

TEST_F(StudyView, TheLaterSubmissionCountsButNotOverOneInTheQueue) {
  send("T", 9);
  auto runs = view("9_[0-5]|PENDING|Priority\n", "5_0|FAILED|1:0|n1\n");
  EXPECT_EQ(runs.size(), 6U);
  EXPECT_EQ(runs_in_phase(runs, RunPhase::pending), 6U);
  EXPECT_EQ(runs[0].slurm.text(), "9_0");
  runs = view("5_0|RUNNING|None\n", "9_0|CANCELLED|0:0|None assigned\n");
  EXPECT_EQ(runs[0].phase, RunPhase::running);
}

TEST_F(StudyView, AnArrayThatSlurmNeverTook) {
  send("T", -1);
  EXPECT_EQ(phases_text(view("", "")), "0 of 6 runs done, 6 not submitted");
  send("U", 0);
  EXPECT_EQ(phases_text(view("", "")), "0 of 6 runs done, 6 not known");
  Journal(plan_.study).refused("U", "1n2t1c", "no such account");
  const auto runs = view("", "");
  EXPECT_EQ(runs_in_phase(runs, RunPhase::unsent), 6U);
  expect_parts(status_text(runs), {"not submitted: Slurm refused its array"});
}

TEST_F(StudyView, WhatIsInTheQueueOrDoneIsNotSentAgain) {
  record("mpi", 1, "completed");
  const auto runs = view("5_[3-4]|PENDING|Resources\n5_2|RUNNING|None\n", "5_5|TIMEOUT|0:0|n2\n");
  plan_.runs[0].state = RunState::done;
  const Submission again = make_submission(plan_, site_with(""), runs);
  EXPECT_EQ(again.done, 1U);
  EXPECT_EQ(again.in_queue, 3U);
  ASSERT_EQ(again.runs.size(), 2U);
  expect_parts(again.runs[0].why, {"5_1"});
  expect_parts(again.runs[1].why, {"TIMEOUT"});
  ASSERT_EQ(again.arrays.size(), 1U);
  EXPECT_EQ(again.arrays[0].need.minutes, 120) << "twice the limit that was too short";
  expect_parts(submission_text(again, plan_), {"again: backend=gloo repeat 3: TIMEOUT"});
}

TEST_F(StudyView, NoMoreThanTheSiteTakes) {
  const auto runs = view("5_0|RUNNING|None\n", "");
  const Submission submission =
      make_submission(plan_, site_with(""), runs, 1001, nullptr, {3, 4, "array.max_submit is 4"});
  ASSERT_EQ(submission.arrays.size(), 1U);
  EXPECT_EQ(submission.arrays[0].runs.size(), 3U);
  ASSERT_EQ(submission.later.size(), 1U);
  EXPECT_EQ(submission.later[0].runs.size(), 2U);
  expect_parts(submission_text(submission, plan_), {"2 runs are left for a later call"});
}

// Of six runs two were sent: the study is not done when these are.
TEST_F(StudyView, WhatIsLeftForLaterIsReportedAndForgotOnceItIsSent) {
  const fs::path study = scratch_ / "few";
  plan_.study = study;
  const Submission submission =
      make_submission(plan_, site_with(""), {}, 1001, nullptr, {2, 2, "array.max_submit is 2"});
  const auto resolved = resolve_points(plan_);
  Journal journal(study);
  const JobArray& sent = submission.arrays.front();
  journal.planned("A", sent, list_elements(plan_, resolved, sent));
  const JobArray& later = submission.later.front();
  journal.planned("A", later, list_elements(plan_, resolved, later), true);
  journal.sent("A", sent.name, 5);
  auto runs = view("5_[0-1]|PENDING|Resources\n", "");
  EXPECT_EQ(phases_text(runs), "0 of 6 runs done, 2 pending, 4 not submitted");
  expect_parts(status_text(runs), {"repeats 1, 2, 3 not submitted: left for a later submit"});
  send("B", 6);
  runs = view("6_[0-5]|PENDING|Resources\n", "");
  EXPECT_EQ(phases_text(runs), "0 of 6 runs done, 6 pending");
  // A run that was sent before is what became of it, until it is sent again.
  journal.planned("C", later, list_elements(plan_, resolved, later), true);
  runs = view("", "6_5|TIMEOUT|0:0|n2\n");
  EXPECT_TRUE(runs[5].timed_out);
}

TEST_F(StudyView, StatusHasALineAShapeAndABarAPoint) {
  record("mpi", 1, "completed");
  const auto runs = view("5_[3-4]|PENDING|Resources\n5_2|RUNNING|None\n", "5_5|TIMEOUT|0:0|n2\n");
  EXPECT_EQ(phases_text(runs), "1 of 6 runs done, 1 running, 2 pending, 2 failed");
  const std::string text = status_text(runs);
  expect_parts(text, {"1 node, 2 tasks of 1 CPU (job 5): 1 of 6 runs done", "pending for Resources",
                      "backend=mpi   [#x>] 1 of 3 done; repeat 2 failed: ",
                      "backend=gloo  [..x] 0 of 3 done; repeat 3 failed: TIMEOUT"});
  const Json json = status_json(runs);
  EXPECT_EQ(json["done"], 1);
  EXPECT_EQ(json["runs"][2]["state"], "running");
  EXPECT_EQ(json["runs"][2]["job"], "5_2");
}

TEST_F(StudyView, RunsThatLeftNoRecordGetOneThatReportsWhy) {
  record("mpi", 1, "completed");
  record("mpi", 2, "failed", "rank 1 was killed");
  const std::string history = "5_2|CANCELLED|0:15|n1\n5_3|TIMEOUT|0:0|n2\n5_4|NODE_FAIL|0:0|n1\n";
  const std::string queue = "5_5|RUNNING|None\n";
  EXPECT_EQ(record_lost_runs(plan_.study, view(queue, history)), 3U);
  EXPECT_EQ(record_lost_runs(plan_.study, view(queue, history)), 0U) << "once only";
  const auto runs = view(queue, "");
  expect_parts(runs[2].why, {"Slurm: CANCELLED, exit code 0:15, on n1 (5_2)"});
  EXPECT_TRUE(runs[3].timed_out) << "known without Slurm, too";
  EXPECT_EQ(runs[5].phase, RunPhase::running);
}

}  // namespace
}  // namespace paceline
