#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>

#include "engine/failure/flight_ring.h"
#include "engine/failure/verdict.h"
#include "engine/launch/process_rank.h"
#include "engine/launch/program.h"
#include "tests/support/dead_process.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

class Folder : public testing::Test {
 protected:
  std::unique_ptr<FlightRing> ring(int rank, int size, int task, const std::string& attempt = "a") {
    return std::make_unique<FlightRing>(
        FlightRing::Identity{rank, size, task, "n" + std::to_string(task), attempt}, path());
  }

  // `count` buckets of each of `steps` steps; of the last, `last`.
  static void run(FlightRing& ring, std::uint64_t steps, int count, int last) {
    for (std::uint64_t step = 1; step <= steps; ++step) {
      ring.note_step(step);
      for (int i = 0; i < (step == steps ? last : count); ++i) {
        const auto sequence = ring.queue(FlightKind::all_reduce, "bucket " + std::to_string(i), 8);
        ring.enter(sequence);
        ring.leave(sequence);
      }
    }
  }

  void status(int rank, RankState state, int code = 0, const std::string& message = "",
              double time = 4e9, const std::string& attempt = "a", int pid = dead_process()) {
    write_status(path(), {rank, host_name(), pid, state, code, message, time, attempt, 2});
  }

  RunVerdict verdict() const { return post_mortem(path(), remains_of_latest(path())); }
  const std::filesystem::path& path() const { return scratch_.path(); }

 private:
  Scratch scratch_;
};

TEST_F(Folder, NamesWhoStoppedAndWhatTheOthersWaitIn) {
  const auto zero = ring(0, 2, 0), one = ring(1, 2, 1);
  run(*zero, 417, 4, 1);
  run(*one, 416, 4, 4);
  status(0, RankState::failed, 72, "rank 0: rank 1 did not come within 3 s");
  status(1, RankState::running);
  EXPECT_EQ(verdict().exit_code, 72);
  EXPECT_EQ(verdict().line.substr(0, verdict().line.find(';', 60)),
            "rank 1 on n1 stopped at step 416, bucket 3; the others wait at step 417, bucket 0");
}

TEST_F(Folder, NamesWhoVanished) {
  const auto zero = ring(0, 2, 0), one = ring(1, 2, 1);
  run(*zero, 2, 3, 2);
  run(*one, 2, 3, 1);
  status(0, RankState::failed, 71, "rank 0: the connection to rank 1 broke");
  status(1, RankState::running);
  EXPECT_EQ(verdict().exit_code, 71);
  EXPECT_TRUE(
      verdict().line.starts_with("rank 1 on " + host_name() +
                                 " ended without reporting an error at step 2, bucket 0; the "
                                 "others wait at step 2, bucket 1"))
      << verdict().line;
}

TEST_F(Folder, OfSeveralThatVanishedTheFirstIsWhoCameLast) {
  const auto zero = ring(0, 2, 0), one = ring(1, 2, 1);
  run(*zero, 2, 3, 2);
  run(*one, 2, 3, 1);
  status(0, RankState::running);
  status(1, RankState::running);
  EXPECT_TRUE(verdict().line.starts_with(
      "rank 1 on n1 ended without reporting an error at step 2, bucket 0; the others wait at"))
      << verdict().line;
}

TEST_F(Folder, AnOwnErrorStaysTheLine) {
  const auto zero = ring(0, 2, 0), one = ring(1, 2, 1);
  run(*zero, 2, 3, 2);
  status(0, RankState::failed, 71, "rank 0: rank 1: bad file");
  status(1, RankState::failed, 65, "bad file");
  EXPECT_EQ(verdict().exit_code, 65);
  EXPECT_EQ(verdict().line, "rank 1: bad file");
}

TEST_F(Folder, WithoutRingsTheMessageIsTheLine) {
  status(0, RankState::failed, 72, "rank 0: rank 1 did not come within 3 s");
  status(1, RankState::running);
  EXPECT_EQ(verdict().line, "rank 0: rank 1 did not come within 3 s");
}

// It was woken to be ended, and came to the collective after all.
TEST_F(Folder, WhatWasDoneAfterTheFirstGaveUpDoesNotCount) {
  const auto zero = ring(0, 2, 0), one = ring(1, 2, 1);
  run(*zero, 5, 2, 2);
  run(*one, 5, 2, 1);
  const double now = read_flights(path())[0].recent.back().ended;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  one->enter(one->queue(FlightKind::all_reduce, "bucket 1", 8));
  status(0, RankState::failed, 72, "rank 0: rank 1 did not come within 3 s", now + 0.01);
  status(1, RankState::failed, 71, "rank 1: rank 0 gave up", now + 1);
  EXPECT_TRUE(
      verdict().line.starts_with("rank 1 on n1 stopped at step 5, bucket 0; the others "
                                 "wait at step 5, bucket 1"))
      << verdict().line;
}

// Both came to the same collective: the one that gave no sign of life stopped.
TEST(FailureSnapshot, WhereAllAreEquallyFarTheSilentOneIsLate) {
  std::vector<Flight> flights(2);
  for (int rank = 0; rank < 2; ++rank) {
    Flight& flight = flights[static_cast<std::size_t>(rank)];
    flight.rank = rank;
    flight.host = "n";
    flight.entered = 1;
    flight.recent = {{0, 26, 8, FlightKind::all_reduce, FlightState::started, "bucket 1", 1, 1, 0}};
    flight.beat = 100;
  }
  EXPECT_TRUE(FailureSnapshot(flights, 100).late().empty());
  flights[1].beat = 98;
  const FailureSnapshot snapshot(flights, 100);
  EXPECT_EQ(snapshot.late(), std::vector<int>{1});
  EXPECT_EQ(snapshot.words_on({1}), " at step 26, bucket 1; the others wait there");
  // It was woken after the other had given up.
  flights[1].beat = 105;
  EXPECT_TRUE(FailureSnapshot(flights, 100).late().empty());
  flights[1].silent_from = 97;
  flights[1].silent_to = 104;
  EXPECT_EQ(FailureSnapshot(flights, 100).late(), std::vector<int>{1});
}

TEST_F(Folder, AnEarlierAttemptIsNotMistakenForThisOne) {
  ring(1, 2, 1, "old");
  status(1, RankState::failed, 65, "an old error", 1e9, "old");
  const auto zero = ring(0, 2, 0);
  status(0, RankState::done, 0, "", 2e9);
  const RunArtifacts artifacts = remains_of_latest(path());
  EXPECT_EQ(artifacts.attempt, "a");
  EXPECT_EQ(artifacts.ranks, 2);
  EXPECT_EQ(artifacts.statuses.size(), 1U);
  EXPECT_EQ(artifacts.flights.size(), 1U);
  EXPECT_TRUE(verdict().line.starts_with("rank 1 ended without reporting an error"))
      << verdict().line;
}

TEST_F(Folder, TheStartersVerdictIsKept) {
  status(0, RankState::failed, 71, "rank 0: the connection to rank 1 broke");
  write_verdict(path(), "other", {1, "another attempt", ""});
  EXPECT_NE(verdict().line, "another attempt");
  write_verdict(path(), "a", {71, "rank 1 died of signal 9", ""});
  EXPECT_EQ(verdict().line, "rank 1 died of signal 9");
  EXPECT_EQ(verdict().exit_code, 71);
}

TEST_F(Folder, WhoLivesStillRuns) {
  status(0, RankState::running, 0, "", 4e9, "a", getpid());
  status(1, RankState::running);
  EXPECT_EQ(still_running(remains_of_latest(path())), std::vector<int>{0});
}

TEST_F(Folder, NothingThereIsReported) {
  expect_error(ErrorKind::input, {"the folder has no files of a run", path().string()},
               [&] { remains_of_latest(path()); });
  expect_error(ErrorKind::input, {"not a folder"}, [&] { remains_of_latest(path() / "none"); });
}

TEST(FailureSnapshot, ReplicasOfATask) {
  std::vector<Flight> flights(4);
  for (int rank = 0; Flight & flight : flights) {
    flight.rank = rank;
    flight.task = rank / 2;
    flight.host = "n" + std::to_string(rank / 2);
    flight.entered = rank++ < 2 ? 5 : 4;
  }
  const FailureSnapshot snapshot(flights);
  EXPECT_EQ(snapshot.replicas_of_task(1), (std::vector<int>{2, 3}));
  EXPECT_EQ(snapshot.late(), (std::vector<int>{2, 3}));
  flights[3].entered = 3;
  EXPECT_EQ(FailureSnapshot(flights).late(), std::vector<int>{3});
  EXPECT_EQ(FailureSnapshot(flights).late_processes(), (std::vector<int>{2, 3}));
  EXPECT_EQ(snapshot.format_ranks({2, 3}), "ranks 2, 3 on n1");
  EXPECT_EQ(FailureSnapshot().words_on({0}), "");
}

TEST(Process, IsAliveStoppedOrGone) {
  EXPECT_EQ(state_of_process(getpid()), ProcessState::alive);
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int state = 0;
  waitpid(child, &state, WUNTRACED);
  EXPECT_EQ(state_of_process(child), ProcessState::stopped);
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(state_of_process(child), ProcessState::none);  // a zombie
  waitpid(child, &state, 0);
  EXPECT_EQ(state_of_process(child), ProcessState::none);
}

TEST(RunDirectory, IsThatOfTheJob) {
  Environment environment = {{"SLURM_SUBMIT_DIR", "/home/u"}, {"SLURM_JOB_ID", "4711"}};
  EXPECT_EQ(run_directory_of_job(environment), "/home/u/4711");
  environment["SLURM_ARRAY_JOB_ID"] = "4700";
  environment["SLURM_ARRAY_TASK_ID"] = "11";
  EXPECT_EQ(run_directory_of_job(environment), "/home/u/4700_11");
  EXPECT_EQ(status_folder(environment), "/home/u/4700_11/status");
  environment[kStatusFolderVariable] = "/elsewhere";
  EXPECT_EQ(status_folder(environment), "/elsewhere");
  EXPECT_FALSE(run_directory_of_job({{"SLURM_SUBMIT_DIR", "/home/u"}, {"SLURM_JOB_ID", "../x"}}));
  EXPECT_FALSE(run_directory_of_job({{"SLURM_JOB_ID", "4711"}}));
  EXPECT_FALSE(run_directory_of_job({}));
  EXPECT_FALSE(status_folder({}));
}

TEST(Attempt, DiffersAfterARequeue) {
  Environment environment = {{"SLURM_JOB_ID", "4711"}};
  const std::string first = find_attempt(environment);
  EXPECT_EQ(find_attempt(environment), first);
  environment["SLURM_RESTART_COUNT"] = "1";
  EXPECT_NE(find_attempt(environment), first);
  environment[kStarterVariable] = "20261121T175651-6965";
  EXPECT_EQ(find_attempt(environment), "20261121T175651-6965");
}

}  // namespace
}  // namespace paceline
