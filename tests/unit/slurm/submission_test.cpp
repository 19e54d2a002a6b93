#include "slurm/submission.h"

#include <gtest/gtest.h>

#include "engine/core/text.h"
#include "slurm/study_view.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

class SubmissionTest : public ::testing::Test {
 protected:
  std::vector<std::string> send(const Site& site, bool collect = false) {
    const Submission submission = make_submission(plan_, site);
    Journal journal(plan_.study);
    std::vector<std::string> reported;
    send_submission(submission, site, plan_, resolve_points(plan_), journal,
                    commands_in(scratch_.path()), collect,
                    [&](const std::string& line) { reported.push_back(line); });
    return reported;
  }

  // Answers 1, 2, ... and keeps what it was told.
  void play_sbatch(int most = 100, const std::string& refusal = "QOSMaxSubmitJobPerUserLimit") {
    fake(scratch_.path(), "sbatch",
         "cd '" + scratch_.path().string() +
             "'\necho \"$*\" >> calls\nn=$(grep -c . calls)\n[ $n -le " + std::to_string(most) +
             " ] || { echo 'sbatch: error: " + refusal +
             "' >&2; exit 1; }\n"
             "echo $n");
  }

  Scratch scratch_;
  StudyPlan plan_ = make_plan(parse_spec("s", kFourPoints), scratch_.path() / "s");
};

TEST_F(SubmissionTest, SendsEveryArrayWithItsFiles) {
  play_sbatch();
  const auto reported = send(site_with(""), true);
  ASSERT_EQ(reported.size(), 3U);
  EXPECT_EQ(reported[0], "job 1: 1n1t2c (1 node, 1 task of 2 CPUs), 6 elements");
  EXPECT_EQ(reported[2], "job 3 collects the study after them");
  const auto folder = plan_.study / "slurm" / "S";
  for (const char* name : {"1n1t2c", "1n2t2c"}) {
    const std::string points = file_text(folder / (std::string(name) + ".points"));
    EXPECT_EQ(std::count(points.begin(), points.end(), '\n'), 6);
    expect_parts(file_text(folder / (std::string(name) + ".sbatch")), {"--array=0-5\n"});
  }
  expect_parts(file_text(scratch_.path() / "calls"), {"--dependency=afterany:1:2"});
  expect_parts(file_text(folder / "collect.sbatch"), {"collect "});
  EXPECT_EQ(Journal(plan_.study).jobs(), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(SubmissionTest, AScreenBeforeEachRunHasItsTime) {
  const auto minutes = [&](const std::string& keys, bool screen) {
    return make_submission(plan_, site_with(keys), {}, 1001, nullptr, {}, screen)
        .arrays.front()
        .need.minutes;
  };
  EXPECT_EQ(minutes("", true), minutes("", false) + kScreenMinutes);
  EXPECT_EQ(minutes(R"("time": {"minutes": 60, "most_minutes": 61})", true), 61);
}

TEST_F(SubmissionTest, AFullQueueIsNoRefusalOfTheStudy) {
  play_sbatch(1);
  const auto reported = send(site_with(""), true);
  ASSERT_EQ(reported.size(), 2U);
  expect_parts(reported[1], {"6 runs are left for a later call", "QOSMaxSubmitJobPerUserLimit"});
  const Journal journal(plan_.study);
  EXPECT_EQ(journal.jobs(), std::vector<std::int64_t>{1});
  const auto runs = view_study(journal, {}, parse_squeue("1_[0-5]|PENDING|Priority\n"), {});
  EXPECT_EQ(phases_text(runs), "0 of 12 runs done, 6 pending, 6 not submitted");
  expect_parts(status_text(runs), {"note: 6 runs wait for the next paceline submit"});
  // The next wave is of those alone; its collector waits for the first, too.
  const Submission next = make_submission(plan_, site_with(""), runs);
  EXPECT_EQ(next.runs.size(), 6U);
  EXPECT_EQ(next.jobs_in_queue, std::set<std::int64_t>{1});
}

TEST_F(SubmissionTest, WavesDescribeARunOnce) {
  play_sbatch();
  SubmissionInput input;
  const Site site = site_with("");
  const StoreContent store;
  std::vector<RunView> views;
  std::set<std::pair<std::size_t, int>> sent;
  std::size_t waves = 0, described = 0;
  for (bool more = true; more; ++waves) {
    input = {&site, &plan_, &store, &views, make_setup(plan_, "S" + std::to_string(waves))};
    input.room = {5, 5, "MaxSubmitJobs is 5"};
    input.sent_once = &sent;
    const Submission submission = prepare_submission(input);
    Journal journal(plan_.study);
    send_submission(submission, site, plan_, resolve_points(plan_), journal,
                    commands_in(scratch_.path()), true, [](const std::string&) {});
    for (const JobArray& array : submission.arrays) {
      for (const ScheduledRun& run : array.runs) {
        EXPECT_TRUE(sent.emplace(run.point, run.repeat).second) << "sent twice";
      }
    }
    more = submission.left() > 0;
    ASSERT_EQ(more, waves < 2) << "5, 5 and 2";
    if (more) {
      expect_parts(submission_text(submission, plan_), {"MaxSubmitJobs is 5"});
    }
  }
  EXPECT_EQ(sent.size(), 12U);
  const Journal journal(plan_.study);
  for (const SentArray& array : journal.arrays()) {
    if (array.later) described += array.elements.size();
  }
  EXPECT_EQ(described, 7U) << "those of the second wave were described by the first";
  const std::string calls = file_text(scratch_ / "calls");
  const auto first = calls.find("--dependency");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(calls.find("--dependency", first + 1), std::string::npos) << "one collector, at last";
}

TEST_F(SubmissionTest, ALargeStudyIsReportedInAFewLines) {
  std::vector<RunView> runs;
  for (int point = 0; point < 3000; ++point) {
    RunView run;
    run.element.point = run.element.point_folder = "seed=" + std::to_string(point);
    run.shape = "1 node";
    run.phase = point == 2500 ? RunPhase::failed : RunPhase::done;
    run.why = point == 2500 ? "rank 1 was killed" : "";
    runs.push_back(run);
  }
  const std::string text = status_text(runs);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 102);
  EXPECT_TRUE(contains(text, "rank 1 was killed")) << "those that failed come first";
  expect_parts(text, {"... and 2900 more points: 2900 of 2900 runs done; --all"});
  const std::string all = status_text(runs, kAllPoints);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3001);
}

TEST_F(SubmissionTest, ARefusedArrayLeavesThoseBeforeIt) {
  play_sbatch(1, "Invalid qos specification");
  expect_error(ErrorKind::usage, {"Invalid qos specification", "check account", "site.json"},
               [&] { send(site_with("")); });
  const Journal journal(plan_.study);
  EXPECT_EQ(journal.jobs(), std::vector<std::int64_t>{1});
  EXPECT_TRUE(journal.arrays()[1].refused);
}

TEST_F(SubmissionTest, ARefusedArrayLeavesThoseBehindItKnown) {
  play_sbatch(0);
  expect_error(ErrorKind::usage, {"QOSMaxSubmitJobPerUserLimit"}, [&] { send(site_with("")); });
  const Journal journal(plan_.study);
  ASSERT_EQ(journal.arrays().size(), 2U);
  EXPECT_TRUE(journal.arrays()[0].refused);
  EXPECT_FALSE(journal.arrays()[1].refused || journal.arrays()[1].called);
  EXPECT_EQ(journal.arrays()[1].job, 0);
  const auto runs = view_study(journal, {}, {}, {});
  const std::string status = status_text(runs);
  EXPECT_EQ(runs_in_phase(runs, RunPhase::unsent), 12U);
  expect_parts(status, {"not submitted: Slurm refused its array",
                        "not submitted: submit stopped before its array"});
  expect_no_parts(status, {"not known"});
}

TEST_F(SubmissionTest, WhatCannotBeAskedForStopsItBeforeAnythingIsSent) {
  play_sbatch();
  Spec spec = parse_spec("s", kFourPoints);
  spec.fixed.set("device", std::string("cuda"));
  plan_ = make_plan(std::move(spec), plan_.study);
  expect_error(ErrorKind::usage, {"no form for them"}, [&] { send(site_with("")); });
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "calls"));
  EXPECT_TRUE(Journal(plan_.study).empty());
}

TEST_F(SubmissionTest, AnArrayThatWasBeingSentIsFoundByItsName) {
  {
    const Submission submission = make_submission(plan_, site_with(""));
    Journal journal(plan_.study);
    const JobArray& array = submission.arrays[0];
    journal.planned("S", array, list_elements(plan_, resolve_points(plan_), array));
    journal.sending("S", array.name);
  }
  fake(scratch_.path(), "squeue", "case \"$*\" in *--name=1n1t2c.s.S*) echo 42; echo 42;; esac");
  Journal journal(plan_.study);
  find_unanswered(journal, commands_in(scratch_.path()));
  EXPECT_EQ(Journal(plan_.study).jobs(), std::vector<std::int64_t>{42});
}

TEST_F(SubmissionTest, AnUnclearAnswerIsNoRefusalAndNothingIsSentTwice) {
  fake(scratch_.path(), "sbatch",
       "echo x >> '" + (scratch_.path() / "calls").string() +
           "'; echo 'error: Socket timed out' >&2; exit 1");
  fake(scratch_.path(), "squeue", "exit 1");
  expect_error(ErrorKind::usage, {"did not say whether it took the job", "Socket timed out"},
               [&] { send(site_with("")); });
  Journal journal(plan_.study);
  EXPECT_TRUE(journal.arrays()[0].called && !journal.arrays()[0].refused);
  EXPECT_EQ(view_study(journal, {}, {}, {})[0].phase, RunPhase::unknown);
  const SlurmCommands slurm = commands_in(scratch_.path());
  expect_error(ErrorKind::usage, {"squeue failed", "try again when Slurm answers"},
               [&] { find_unanswered(journal, slurm); });
  fake(scratch_.path(), "squeue", "case \"$*\" in *1n1t2c.s.S*) echo 9;; esac");
  find_unanswered(journal, slurm);
  EXPECT_EQ(Journal(plan_.study).jobs(), std::vector<std::int64_t>{9});
  EXPECT_EQ(file_text(scratch_ / "calls"), "x\n");
}

TEST_F(SubmissionTest, ReasonsAreReportedOnceForAllRepeats) {
  std::vector<RunView> runs;
  for (int repeat = 1; repeat <= 5; ++repeat) {
    RunView run;
    run.element.point = run.element.point_folder = "gpus=1,backend=mpi";
    run.element.repeat = repeat;
    run.shape = "1 node";
    run.phase = RunPhase::failed;
    run.slurm = {7, repeat - 1};
    run.why = run.slurm.text() + " left no record";
    runs.push_back(run);
  }
  runs.back().why = "TIMEOUT after 5 min (7_4)";
  expect_parts(status_text(runs),
               {"; repeats 1 to 4 failed: 7_0, 7_1, 7_2, 7_3 left no record; repeat 5 "
                "failed: TIMEOUT after 5 min (7_4)\n"});
  const Submission again = make_submission(plan_, site_with(""), runs);
  const std::string text = submission_text(again, plan_);
  expect_parts(text, {"again: gpus=1,backend=mpi repeats 1, 2, 3: 7_0, 7_1, 7_2 left no "
                      "record\n"});
}

TEST_F(SubmissionTest, ARunThatWritesCheckpointsGoesOnFromThem) {
  const ScriptSetup setup = make_setup(plan_);
  expect_no_parts(points_line(plan_, {0, 2}, setup), {"--resume"});
  Spec spec = parse_spec("s", kFourPoints);
  spec.fixed.set("checkpoint_every", std::string("1epochs"));
  plan_ = make_plan(std::move(spec), plan_.study);
  expect_parts(points_line(plan_, {0, 2}, setup),
               {"/s/slurm/runs/gpus=1,backend=mpi/2\",\"--resume=latest\"]"});
}

TEST_F(SubmissionTest, TheTableOfCost) {
  expect_parts(submission_text(make_submission(plan_, site_with("")), plan_),
               {"s: 2 arrays, 12 elements: at most 0.0 GPU-hours, 36.0 CPU-hours", "1n2t2c",
                "site profile"});
}

// 574 and 332 s are the published rows of 1 and 2 GPUs on so many CPUs.
TEST_F(SubmissionTest, TheCostByPublishedTimes) {
  const StoreContent published = load_store(PACELINE_SOURCE_DIR "/results/reference");
  const auto text_of_study = [&](const std::string& workload, int gpus, int cpus) {
    plan_ = make_plan(
        parse_spec("s", R"({"name": "s", "workload": ")" + workload +
                            R"(", "fixed": {"device": "cuda", "backend": "mirrored", "gpus": )" +
                            std::to_string(gpus) + R"(}, "axes": {"cpus_per_task": [)" +
                            std::to_string(cpus) + "]}, \"repeats\": 3}"));
    const Site site = site_with(R"("gpus": {"form": "gres"})");
    return submission_text(make_submission(plan_, site, {}, 1001, &published), plan_);
  };
  expect_parts(text_of_study("resnet50-cassava", 1, 2),
               {"3 elements: about 0.5 GPU-hours, 1.0 CPU-hours (by published times), "
                "at most 3.0 and 6.0;"});
  expect_parts(text_of_study("resnet50-cassava", 2, 8), {"about 0.6 GPU-hours"});
  // Nobody published 5 GPUs: those runs are no part of what is "about" so much.
  plan_ = make_plan(parse_spec("s", R"({"name": "s", "workload": "resnet50-cassava",
      "fixed": {"device": "cuda", "backend": "mirrored", "cpus_per_task": 8},
      "axes": {"gpus": [2, 5]}, "repeats": 3})"));
  const std::string mixed = submission_text(
      make_submission(plan_, site_with(R"("gpus": {"form": "gres"})"), {}, 1001, &published),
      plan_);
  expect_parts(mixed, {"about 0.6 GPU-hours, 2.2 CPU-hours (by published times), and up to 15.0 "
                       "and 24.0 for 3 runs of unknown time; at most 21.0 and 48.0;"});
  for (const std::string& other :
       {text_of_study("mnist-mlp", 1, 2), text_of_study("resnet50-cassava", 5, 8)}) {
    EXPECT_TRUE(contains(other, "elements: at most ")) << "nobody published that: " << other;
  }
}

}  // namespace
}  // namespace paceline
