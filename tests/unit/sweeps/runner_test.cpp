#include "sweeps/runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "engine/core/clock.h"
#include "engine/core/json.h"
#include "results/run_record.h"
#include "sweeps/inventory.h"
#include "tests/unit/results/sample_record.h"
#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

using Texts = std::vector<std::string>;

// Two points, gpus=1 and gpus=2, two repeats, one after another.
class Runner : public ::testing::Test {
 protected:
  Runner()
      : spec_(spec_with(R"("fixed": {"backend": "null", "cpus_per_task": 3},
            "axes": {"gpus": [1, 2]}, "repeats": 2, "order": "sequential")")),
        points_(expand(spec_, 8, Unbuilt::keep).points),
        study_(folder_ / "study") {}

  std::vector<RunStatus> inventory() const {
    StoreContent store;
    if (std::filesystem::exists(study_)) store = load_store(study_);
    const Record sample(sample_record(), "sample");
    const std::vector<Resolved> resolved(2, Resolved{{}, "id", "data", sample->build()});
    return take_inventory(points_, schedule(2, spec_.repeats, false, 0), store, resolved, false);
  }

  // What each run of the schedule is now: "done", or why it is not.
  Texts states() const {
    Texts texts;
    for (const RunStatus& run : inventory()) {
      texts.push_back(run.state == RunState::done ? "done" : run.why);
    }
    return texts;
  }

  RunnerResult sweep(const Texts& mode) {
    lines_.clear();
    RunnerSetup setup;
    setup.spec = &spec_;
    setup.points = &points_;
    setup.program = {FAKE_RUN};
    setup.program.insert(setup.program.end(), mode.begin(), mode.end());
    setup.grace_seconds = 0.3;
    setup.line = [&](const std::string& text) { lines_.push_back(text); };
    return run_study(setup, StudyLock(study_), inventory());
  }

  // SIGKILL takes its time.
  bool nothing_runs() const {
    const int descriptor = open((study_ / ".alive").c_str(), O_RDWR);
    if (descriptor < 0) return false;  // it never ran
    bool free = false;
    for (int i = 0; i < 100 && !free; ++i) {
      free = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
      if (!free) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    close(descriptor);
    return free;
  }

  Scratch folder_;
  Spec spec_;
  std::vector<PlannedPoint> points_;
  std::filesystem::path study_;
  Texts lines_;
};

TEST_F(Runner, EveryRunLeavesItsRecord) {
  const RunnerResult result = sweep({"complete"});
  EXPECT_EQ(result.completed, 4);
  EXPECT_EQ(result.failed, 0);
  EXPECT_EQ(result.stopped_by, 0);
  EXPECT_EQ(states(), Texts(4, "done"));
  ASSERT_EQ(lines_.size(), 4u);
  EXPECT_TRUE(lines_[0].starts_with("[1/4] gpus=1 repeat 1: 1.50 s, 33,200 samples/s; about "))
      << lines_[0];
  EXPECT_EQ(lines_[3], "[4/4] gpus=2 repeat 2: 1.50 s, 33,200 samples/s");
  const StoreContent store = load_store(study_);
  ASSERT_EQ(store.records.size(), 4u);
  const Record& last = store.records[3];
  EXPECT_EQ(last->point, "gpus=2");
  EXPECT_EQ(last->repeat, 2);
  EXPECT_EQ(last->round, 0) << "runs that follow each other share no round";
  EXPECT_EQ(last->study, "s");
  EXPECT_EQ(last->session, store.records[0]->session);
  EXPECT_EQ(sweep({"fail"}).failed, 0) << "nothing is left to run";
  EXPECT_TRUE(lines_.empty());
}

// Results decide what is run next, in the same session, and a budget what is not.
TEST_F(Runner, MoreRunsFollowAsLongAsThereAreAny) {
  spec_.sequential = true;
  RunnerSetup setup;
  setup.spec = &spec_;
  setup.points = &points_;
  setup.program = {FAKE_RUN, "complete"};
  setup.line = [&](const std::string& text) { lines_.push_back(text); };
  int asked = 0, timed = 0;
  setup.more = [&] {
    EXPECT_EQ(load_store(study_).records.size(), asked == 0 ? 4U : 5U);
    std::vector<RunStatus> next;
    if (++asked > 1) return next;
    for (const std::size_t point : {0, 1}) {
      next.emplace_back();
      next.back().run = {point, 3};
    }
    return next;
  };
  setup.affordable = [](const ScheduledRun& run) { return run.repeat < 3 || run.point == 0; };
  setup.took = [&](const ScheduledRun&, double seconds) { timed += seconds > 0; };
  EXPECT_EQ(run_study(setup, StudyLock(study_), inventory()).completed, 5);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(timed, 5);
  const StoreContent store = load_store(study_);
  ASSERT_EQ(store.records.size(), 5U);
  EXPECT_EQ(store.records[2]->repeat, 3);
  for (const Record& record : store.records) {
    EXPECT_EQ(record->session, store.records[0]->session);
    EXPECT_TRUE(record->flags.sequential) << "so that reports know";
  }
}

TEST_F(Runner, AFailureIsRecordedAndTheOthersGoOn) {
  const RunnerResult result = sweep({"fail", "gpus=1"});
  EXPECT_EQ(result.completed, 2);
  EXPECT_EQ(result.failed, 2);
  const std::string why = "failed: the data set is missing (data/x); get it (exit code 65)";
  EXPECT_EQ(states(), (Texts{why, why, "done", "done"}));
  const auto log = study_ / "logs" / "gpus=1.1.1.log";
  expect_parts(lines_.at(0),
               {"[1/4] gpus=1 repeat 1 failed: the data set is missing", log.string()});
  expect_parts(read_text(log), {"a warning\n", "the data set is missing"});

  EXPECT_EQ(sweep({"complete"}).completed, 2) << "only those that failed";
  EXPECT_EQ(states(), Texts(4, "done"));
  EXPECT_TRUE(std::filesystem::exists(study_ / "gpus=1" / "1.2.json")) << "the next attempt";
  EXPECT_TRUE(std::filesystem::exists(study_ / "logs" / "gpus=1.1.2.log"));
}

// Its samples may still be there: the next record then is the second attempt.
TEST_F(Runner, ARecordThatWasRemovedIsMadeAgain) {
  sweep({"complete"});
  std::filesystem::remove(study_ / "gpus=1" / "2.1.json");
  EXPECT_EQ(states(), (Texts{"done", "no record", "done", "done"}));
  const RunnerResult result = sweep({"complete"});
  EXPECT_EQ(result.completed, 1);
  EXPECT_EQ(result.failed, 0);
  EXPECT_EQ(states(), Texts(4, "done"));
  EXPECT_EQ(load_store(study_).records.size(), 4u);
}

TEST_F(Runner, WordsThatAreNotUtf8AreRecorded) {
  spec_.repeats = 1;
  EXPECT_EQ(sweep({"bytes", "gpus=1"}).failed, 1);
  expect_parts(states()[0], {"failed: ", "broken", "(exit code 1)"});
}

TEST_F(Runner, FailuresWithoutWords) {
  spec_.repeats = 1;
  sweep({"quiet-fail", "gpus=1"});
  EXPECT_EQ(states(), (Texts{"failed: ended with exit code 3", "done"}));
  sweep({"die", "gpus=1"});
  EXPECT_EQ(states(), (Texts{"failed: killed by SIGKILL (Killed)", "done"}));
}

TEST_F(Runner, AnExitCodeIsNoRecord) {
  spec_.repeats = 1;
  EXPECT_EQ(sweep({"silent", "gpus=2"}).failed, 1);
  EXPECT_EQ(states(), (Texts{"done", "failed: exit code 0, but it left no record"}));
  EXPECT_EQ(sweep({"cut-short", "gpus=2"}).failed, 1);
  expect_parts(states()[1], {"exit code 0, but its record cannot be used", "2.json"});
}

TEST_F(Runner, OneThatHangsIsEndedWithAllItStarted) {
  spec_.repeats = 1;
  spec_.timeout_seconds = 0.2;
  const double start = now_seconds();
  const RunnerResult result = sweep({"deaf", "gpus=1"});
  EXPECT_LT(now_seconds() - start, 10);
  EXPECT_EQ(result.failed, 1);
  EXPECT_EQ(result.completed, 1);
  EXPECT_EQ(states(), (Texts{"timeout: took longer than 200 ms", "done"}));
  expect_parts(lines_.at(0), {"gpus=1 repeat 1 timed out: took longer than 200 ms"});
  EXPECT_TRUE(nothing_runs());
}

TEST_F(Runner, OneThatIsDoneWhenItsTimeIsUpIsDone) {
  spec_.repeats = 1;
  spec_.timeout_seconds = 0.5;
  const RunnerResult result = sweep({"late", "gpus=1"});
  EXPECT_EQ(result.failed, 0);
  EXPECT_EQ(result.completed, 2);
  EXPECT_EQ(states(), (Texts{"done", "done"}));
}

TEST_F(Runner, WhatARunLeavesBehindIsEnded) {
  spec_.repeats = 1;
  sweep({"orphan", "gpus=1"});
  EXPECT_EQ(states(), (Texts{"failed: ended with exit code 4", "done"}));
  EXPECT_TRUE(nothing_runs());
}

TEST_F(Runner, InterruptedItKeepsWhatIsDoneAndGoesOnThere) {
  const RunnerResult result = sweep({"interrupted", "gpus=2"});
  EXPECT_EQ(result.stopped_by, SIGINT);
  EXPECT_EQ(result.completed, 2);
  EXPECT_EQ(result.failed, 0);
  EXPECT_TRUE(nothing_runs());
  EXPECT_EQ(states(), (Texts{"done", "done", "no record", "no record"}));
  EXPECT_FALSE(std::filesystem::exists(study_ / "gpus=2"));

  EXPECT_EQ(sweep({"complete"}).completed, 2);
  EXPECT_EQ(states(), Texts(4, "done"));
  EXPECT_FALSE(std::filesystem::exists(study_ / "gpus=1" / "1.2.json")) << "not run again";
}

TEST_F(Runner, ASignalBetweenRunsStopsBeforeTheNextOne) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  raise(SIGTERM);
  const RunnerResult result = sweep({"complete"});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(result.stopped_by, SIGTERM);
  EXPECT_EQ(states(), Texts(4, "no record"));
}

TEST_F(Runner, TheWordsOfARun) {
  spec_.name = "s";
  Texts words = run_words(spec_, points_[1], {1, 2}, "/r/s", "session");
  const std::string context = words.back();
  words.pop_back();
  EXPECT_EQ(words, (Texts{"train", "mnist-mlp", "--gpus=2", "--cpus-per-task=3", "--backend=null",
                          "--quiet", "--store=/r/s"}));
  EXPECT_EQ(context,
            "--context={\"study\":\"s\",\"point\":\"gpus=2\",\"point_folder\":\"gpus=2\","
            "\"repeat\":2,\"session\":\"session\",\"round\":0}");
  spec_.interleaved = true;
  EXPECT_TRUE(
      run_words(spec_, points_[1], {1, 2}, "/r/s", "session").back().ends_with("\"round\":2}"));
}

TEST_F(Runner, AProgramThatCannotBeStarted) {
  spec_.repeats = 1;
  RunnerSetup setup;
  setup.spec = &spec_;
  setup.points = &points_;
  setup.program = {"/no/such/program"};
  setup.line = [](const std::string&) {};
  EXPECT_EQ(run_study(setup, StudyLock(study_), inventory()).failed, 2);
}

TEST_F(Runner, FollowsNoLinkOfAStudy) {
  namespace fs = std::filesystem;
  fs::create_directories(study_ / "logs");
  std::ofstream(folder_ / "mine") << "precious";
  fs::create_symlink(folder_ / "mine", study_ / "logs/gpus=1.1.1.log");
  expect_parts(catch_error([&] { sweep({"complete"}); }),
               {"a link is here", "logs/gpus=1.1.1.log", "remove it"});
  fs::remove_all(study_ / "logs");
  fs::create_directory(folder_ / "other");
  fs::create_directory_symlink(folder_ / "other", study_ / "gpus=2");
  expect_parts(catch_error([&] { sweep({"complete"}); }), {"a link is here", "study/gpus=2"});
  std::string text;
  std::getline(std::ifstream(folder_ / "mine") >> std::ws, text);
  EXPECT_EQ(text, "precious");
  EXPECT_TRUE(fs::is_empty(folder_ / "other"));
}

// As another user, or a script, may do while it runs.
TEST_F(Runner, AStudyThatIsTakenAwayEndsTheSweep) {
  namespace fs = std::filesystem;
  const auto take_away = [&](const std::function<void()>& act) {
    RunnerSetup setup;
    setup.spec = &spec_;
    setup.points = &points_;
    setup.program = {FAKE_RUN, "complete", "train"};
    int runs = 0;
    setup.line = [&](const std::string&) {
      if (++runs == 2) act();
    };
    return catch_error([&] { run_study(setup, StudyLock(study_), inventory()); });
  };
  expect_parts(take_away([&] { fs::rename(study_, folder_ / "moved"); }),
               {study_.string(), "was moved to " + (folder_ / "moved").string() + " (2 records)",
                "2 runs ended; records here now: 0", "put it back"});
  EXPECT_FALSE(fs::exists(study_)) << "nothing is made anew";
  expect_parts(take_away([&] { fs::remove_all(study_); }),
               {"was removed while its runs were made"});
}

// The line that a sweep into a full file system ends with; "" if none, "skip" if one cannot be
// made here. In a process of its own, for its own mounts.
std::string line_in_full_folder(const std::function<void()>& sweep,
                                const std::filesystem::path& folder) {
  int result[2];
  if (pipe(result) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string line = "skip";
    if (unshare(CLONE_NEWNS) == 0 && mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=4k") == 0) {
      line = catch_error(sweep);
    }
    _exit(write(result[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : 1);
  }
  close(result[1]);
  char line[1024] = {};
  const ssize_t got = read(result[0], line, sizeof line - 1);
  close(result[0]);
  waitpid(child, nullptr, 0);
  return got > 0 ? line : "";
}

TEST_F(Runner, AFullFolderEndsTheSweepWithOneLine) {
  const std::string line = line_in_full_folder([&] { sweep({"quiet-fail"}); }, folder_.path());
  if (line == "skip") GTEST_SKIP() << "no right to make a mount namespace";
  expect_parts(line, {"No space left on device", "gpus=1", "free some space"});
}

}  // namespace
}  // namespace paceline
