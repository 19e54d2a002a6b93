#include "run/element.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/failure/flight_ring.h"
#include "engine/failure/rank_status.h"
#include "engine/failure/verdict.h"
#include "results/names.h"
#include "results/run_record.h"
#include "results/store.h"
#include "slurm/needs.h"
#include "sweeps/program.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

// A points file of one run.
class Element : public ::testing::Test {
 protected:
  Element() { write_points(R"("--backend=mirrored/mpi",)", "S"); }

  std::filesystem::path file(const std::string& name) const { return scratch_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }
  void write_points(const std::string& words, const std::string& session) {
    RunContext context;
    context.study = "s";
    context.point = "gpus=1";
    context.point_folder = "p";
    context.session = session;
    context.repeat = 2;
    write("points", R"(["train","mnist-mlp","--gpus=1","--cpus-per-task=1",)" + words +
                        line_of_words({"--store=" + file("study").string(),
                                       "--context=" + context.json(), "--quiet"})
                            .substr(1) +
                        "\n");
  }
  ArrayElement element() const { return {file("points").string()}; }
  ElementRun run() const { return read_run(element(), {}); }

  std::string reason_of_end(const ElementEnd& end) const {
    EXPECT_EQ(write_end(run(), end), end.exit_code == 0 ? 70 : end.exit_code);
    const StoreContent content = load_store(file("study"));
    return content.records.empty() ? "" : content.records.back()->reason;
  }
  std::string reason_of_end(int code, const std::string& log) const {
    write("log", log);
    return reason_of_end({code, file("log")});
  }

  // Of a run in whose job the signal before the limit came.
  std::string reason_of_limit(int code, const std::string& key = "time.minutes") const {
    ::testing::internal::CaptureStderr();
    const std::string reason = reason_of_end({code, file("log"), file("status"), 5, key, true});
    said_ = ::testing::internal::GetCapturedStderr();
    return reason;
  }
  std::string last_status() const { return load_store(file("study")).records.back()->status; }

  // What a rank leaves behind that came to `step` of 6,000.
  void write_rank(int rank, std::uint64_t step, RankState state, int code = 0,
                  const std::string& message = "") const {
    std::filesystem::create_directories(file("status"));
    FlightRing ring({rank, 2, rank, "n1", "a"}, file("status"));
    ring.note_last_step(6000);
    ring.note_step(step);
    write_status(file("status"), {rank, "n1", 1, state, code, message, 1e9, "a", 2});
  }

  Scratch scratch_;
  mutable std::string said_;
};

TEST_F(Element, ItsRunIsThatOfTheLine) {
  const ElementRun run = this->run();
  EXPECT_EQ(run.what.workload, "mnist-mlp");
  EXPECT_EQ(run.what.point_folder, "p");
  EXPECT_EQ(run.what.repeat, 2);
  EXPECT_EQ(run.what.parameters.integer("cpus_per_task"), 1);
  EXPECT_EQ(run.what.parameters.text("backend"), "mirrored/mpi");
  EXPECT_EQ(run.store, file("study"));
  ArrayElement fallen = element();
  fallen.backend = "ring";
  EXPECT_EQ(read_run(fallen, {}).what.parameters.text("backend"), "ring");
}

TEST_F(Element, AScriptSentByHandGivesItsJobAsSession) {
  EXPECT_EQ(run().what.session, "S");
  write_points("", kDryRunSession);
  EXPECT_EQ(read_run(element(), {{"SLURM_ARRAY_JOB_ID", "17"}}).what.session, "by-hand-17");
}

TEST_F(Element, LinesThatAreNoRunAreRefused) {
  for (const auto& [line, part] :
       {std::pair(R"(["nonsense"])", "does not describe a run"),
        std::pair(R"(["train","mnist-mlp","gpus=1"])", "unknown word \"gpus=1\""),
        std::pair(R"(["train","mnist-mlp","--store=s"])", "--store and --context are missing")}) {
    write("points", std::string(line) + "\n");
    expect_error(ErrorKind::usage, {part, "submit the study again"}, [&] { run(); });
  }
}

TEST_F(Element, ARunWithoutARecordGetsOneThatSaysWhy) {
  EXPECT_EQ(reason_of_end(71, "x\npaceline: rank 1 was killed\nsrun: error: n1: task 1\n"),
            "rank 1 was killed (exit code 71)");
  EXPECT_EQ(reason_of_end(1, "x\nsrun: error: no such node\ny\n"),
            "srun: error: no such node (exit code 1)");
  EXPECT_EQ(reason_of_end(137, "x\n"), "killed by SIGKILL");
  EXPECT_EQ(reason_of_end(255, ""), "ended with exit code 255");
  EXPECT_EQ(reason_of_end(0, ""), "exit code 0, but it left no record");
  EXPECT_EQ(load_store(file("study")).records.back()->status, "failed");
  reason_of_end(75, "paceline: saved");
  EXPECT_EQ(load_store(file("study")).records.back()->status, "preempted");
  EXPECT_FALSE(run().is_done()) << "none of these is completed";
}

TEST_F(Element, ARunThatTheLimitsSignalEndedSaysSo) {
  EXPECT_EQ(reason_of_limit(138),
            "ended by the signal before the job's time limit of 5 min before any rank began; raise "
            "time.minutes of the site profile, or let the next submit double the limit");
  write_rank(0, 0, RankState::running);
  EXPECT_TRUE(reason_of_limit(138).find(" before the first step;") != std::string::npos);
  write_rank(0, 4832, RankState::failed, 71, "rank 0: rank 1 is gone");
  write_rank(1, 4831, RankState::running);
  const std::string reason = reason_of_limit(138);
  EXPECT_EQ(reason,
            "ended by the signal before the job's time limit of 5 min at step 4831 of 6000; raise "
            "time.minutes of the site profile, or let the next submit double the limit");
  EXPECT_EQ(last_status(), "timeout") << "so that the next one gets twice the time";
  EXPECT_EQ(said_, "paceline: " + reason + "\n");
  EXPECT_EQ(post_mortem(file("status"), remains_of_latest(file("status"))).line, reason);
  EXPECT_TRUE(reason_of_limit(138, kMostMinutesKey)
                  .ends_with("; raise time.most_minutes of the "
                             "site profile"))
      << "which caps the double, too";
}

TEST_F(Element, ARunThatSavedItselfAtTheLimitSaysSo) {
  for (const int rank : {0, 1}) write_rank(rank, 655, RankState::failed, 75, "stopped on request");
  EXPECT_EQ(reason_of_limit(75, "time.margin"),
            "ended by the signal before the job's time limit of 5 min at step 655 of 6000, with a "
            "complete checkpoint, from which the next submit goes on; raise time.margin of the "
            "site profile");
  EXPECT_EQ(last_status(), "preempted");
}

TEST_F(Element, AnErrorOfARanksOwnIsNotTheLimits) {
  write("log", "paceline: rank 1: run.json: No space left on device\n");
  write_rank(0, 655, RankState::failed, 71, "rank 0: rank 1 is gone");
  write_rank(1, 655, RankState::failed, 65, "rank 1: run.json: No space left on device");
  EXPECT_EQ(reason_of_limit(71), "rank 1: run.json: No space left on device (exit code 71)");
  EXPECT_EQ(last_status(), "failed");
  EXPECT_EQ(said_, "");
}

TEST_F(Element, AProgramOfTheUsersOwnThatTheLimitEndedShowsItsLastLine) {
  write("points", R"(["train","command","--gpus=1","--cpus-per-task=1","--store=)" +
                      file("study").string() +
                      R"(","--context={\"study\":\"s\",\"point\":\"p\",)"
                      R"(\"point_folder\":\"p\",\"session\":\"S\",\"repeat\":1,\"round\":1}"])"
                      "\n");
  write("log", "epoch 3\npaceline: own was killed by SIGUSR1; its last line: epoch 3\n");
  EXPECT_EQ(reason_of_limit(1),
            "ended by the signal before the job's time limit of 5 min: own was killed by SIGUSR1; "
            "its last line: epoch 3; raise time.minutes of the site profile, or let the next "
            "submit double the limit");
  EXPECT_EQ(last_status(), "timeout");
}

TEST_F(Element, FallsBackOnlyFromCommunication) {
  const int stall = exit_code(ErrorKind::stall);
  EXPECT_EQ(find_fallback(run(), 1, file("status"), "ring"), "");
  EXPECT_EQ(find_fallback(run(), stall, file("status"), "mpi"), "") << "it is that one";
  expect_error(ErrorKind::input, {"status"},
               [&] { find_fallback(run(), stall, file("status"), "ring"); });
}

TEST_F(Element, AJobIsComparedWithItsRun) {
  expect_error(ErrorKind::usage, {"job 7: the job has 2 nodes, its run needs 1"}, [&] {
    check_job(run(), {}, {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "2"}});
  });
  const Record refused = load_store(file("study")).records.at(0);
  EXPECT_EQ(refused->status, "failed");
  expect_parts(refused->reason, {"job 7: the job has 2 nodes"});
  expect_error(ErrorKind::usage, {"--built device=nope", "nope"},
               [&] { check_job(run(), {"device=nope"}, {}); });
  for (const Name& backend : known_names().backends) {
    if (backend.built) continue;
    expect_error(ErrorKind::usage, {"backend " + backend.name + " is not built into the program"},
                 [&] { check_job(run(), {"backend=" + backend.name}, {}); });
  }
}

}  // namespace
}  // namespace paceline
