// spawn_direct(): ranks as our own children; they are the program of direct_ranks.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "engine/core/clock.h"
#include "engine/start/spawn.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

RunVerdict spawn(int ranks, const std::string& how, const Environment& extra = {}) {
  SpawnRequest request{{DIRECT_RANKS, how}, ranks, environment_of_process()};
  for (const auto& [name, value] : extra) request.environment[name] = value;
  return spawn_direct(request);
}

TEST(Direct, RanksKnowTheirPlaceAndTheirOutputArrives) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  // Also from within another launcher's job.
  const RunVerdict verdict = spawn(
      3, "talks",
      {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "1"}, {"PMIX_RANK", "0"}});
  const std::string errors = testing::internal::GetCapturedStderr();
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_EQ(verdict.exit_code, 0) << verdict.line;
  for (const char* rank : {"0", "1", "2"}) {
    expect_parts(output, {"rank " + std::string(rank) + " of 3 on 3\n"});
    expect_parts(errors, {"progress of rank " + std::string(rank) + "\n"});
  }
}

TEST(Direct, AKilledRankIsNamedAndTheOthersStopped) {
  const double start = now_seconds();
  const RunVerdict verdict = spawn(2, "killed");
  EXPECT_EQ(verdict.exit_code, 71);
  expect_parts(verdict.line, {"rank 1", "signal 9 (Killed)"});
  EXPECT_LT(now_seconds() - start, 25);  // the other would sleep for 30 s
}

TEST(Direct, AHangingSurvivorIsStoppedAndTheStallReported) {
  const double start = now_seconds();
  const RunVerdict verdict = spawn(2, "hangs");
  EXPECT_EQ(verdict.exit_code, 72);
  EXPECT_EQ(verdict.line, "rank 0: rank 1 did not come");
  EXPECT_LT(now_seconds() - start, 50);  // the other would sleep for 60 s
}

TEST(Direct, RanksThatAreAllStoppedAreEnded) {
  SpawnRequest request{{DIRECT_RANKS, "silent"}, 2, environment_of_process()};
  request.silence_seconds = 4;  // also until they begin
  const RunVerdict verdict = spawn_direct(request);
  EXPECT_EQ(verdict.exit_code, 72);
  EXPECT_EQ(verdict.line, "no rank gave a sign of life for 4 s; see who stopped them all");
}

TEST(Direct, ErrorsAndCodesPass) {
  const RunVerdict thrown = spawn(2, "throws");
  EXPECT_EQ(thrown.exit_code, 65);
  EXPECT_EQ(thrown.line, "rank 1: rank1.gz: a bad file");
  EXPECT_EQ(spawn(2, "code").exit_code, 3);
}

TEST(Direct, AnInterruptStopsAll) {
  sigset_t before, set;  // blocked first, so that the thread below does not take the signal
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  std::thread interrupter([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(getpid(), SIGTERM);
  });
  const RunVerdict verdict = spawn(2, "waits");
  interrupter.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(verdict.exit_code, 128 + SIGTERM);
  expect_parts(verdict.line, {"stopped by signal 15"});
}

TEST(Direct, AProgramThatIsNotThereIsNamed) {
  const RunVerdict verdict = spawn_direct({{"/no/such/program"}, 2, environment_of_process()});
  EXPECT_EQ(verdict.exit_code, 70);
  expect_parts(verdict.line, {"/no/such/program"});
}

}  // namespace
}  // namespace paceline
