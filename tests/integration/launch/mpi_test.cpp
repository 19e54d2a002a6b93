// The mpi-ring backend and spawn_ranks() with real mpirun; the ranks are the program of ranks.cpp.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/core/clock.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/start/spawn.h"
#include "tests/support/expect_error.h"
#include "tests/support/hydra.h"
#include "tests/support/scratch.h"
#include "tests/support/why_not.h"

namespace paceline {
namespace {

RunVerdict spawn(int ranks, const std::string& what, const std::string& argument,
                 const Environment& extra = {}) {
  SpawnRequest request{{LAUNCH_RANKS, what, argument}, ranks, environment_of_process()};
  for (const auto& [name, value] : extra) request.environment[name] = value;
  return spawn_ranks(request);
}

void expect_success(const RunVerdict& verdict) {
  EXPECT_EQ(verdict.exit_code, 0) << verdict.line << verdict.noise;
  EXPECT_EQ(verdict.line, "");
}

std::string run_shell(const std::string& script) {
  return capture_output({"/bin/sh", "-c", script}, 60);
}

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, OnOneNode) {
  expect_success(spawn(GetParam(), "collectives", "1"));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4));

TEST(Mpi, CollectivesOverNodes) {
  expect_success(spawn(4, "collectives", "2", {{"PACELINE_TEST_RANKS_PER_NODE", "2"}}));
  expect_success(spawn(3, "collectives", "2", {{"PACELINE_TEST_RANKS_PER_NODE", "2"}}));
  expect_success(spawn(3, "collectives", "3", {{"PACELINE_TEST_RANKS_PER_NODE", "1"}}));
}

// Of two ranks, which an mpirun written here to `folder` starts by `script`.
SpawnRequest make_request(const std::filesystem::path& folder, const std::string& script) {
  const auto program = folder / "mpirun";
  std::ofstream(program)
      << "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit 0; }\n"
      << script;
  std::filesystem::permissions(program, std::filesystem::perms{0755});
  SpawnRequest request{{LAUNCH_RANKS, "collectives", "1"}, 2, environment_of_process()};
  request.environment["PATH"] = folder.string() + ":" + request.environment["PATH"];
  return request;
}

TEST(Mpi, RanksThatOutliveTheirLauncherAreEnded) {
  const Scratch scratch;
  EXPECT_NE(spawn_ranks(make_request(scratch.path(), "setsid sleep 972 &\nexit 1\n")).exit_code, 0);
  EXPECT_EQ(run_shell("pgrep -f 'sleep 97[2]'"), "");
}

// One that looks for other nodes, say, and says nothing of it.
TEST(Mpi, ALauncherThatHangsBeforeARankBeginsIsEnded) {
  const Scratch scratch;
  SpawnRequest request = make_request(scratch.path(), "trap '' TERM\nsleep 971\n");
  request.silence_seconds = 1;
  const double start = now_seconds();
  const RunVerdict verdict = spawn_ranks(request);
  EXPECT_EQ(verdict.exit_code, 72);
  expect_parts(verdict.line, {"no rank began within 1 s", "--start-seconds"});
  EXPECT_LT(now_seconds() - start, 20);
  EXPECT_EQ(run_shell("pgrep -f 'sleep 97[1]'"), "");
}

// In a shell of salloc on a login node nothing of the ranks is seen here, so nothing is known of
// them.
TEST(Mpi, RanksThatCannotBeSeenAreNotCalledLate) {
  const Scratch scratch;
  SpawnRequest request = make_request(scratch.path(), "sleep 4\n");
  request.environment["SLURM_JOB_ID"] = "4711";
  request.environment.erase("SLURMD_NODENAME");
  request.silence_seconds = 1;
  expect_no_parts(spawn_ranks(request).line, {"no rank began"});
}

TEST(Mpi, TestVariableIsChecked) {
  const RunVerdict verdict = spawn(2, "collectives", "2", {{"PACELINE_TEST_RANKS_PER_NODE", "no"}});
  EXPECT_EQ(verdict.exit_code, 64);
  expect_parts(verdict.line, {"\"no\" is not a number of ranks"});
}

TEST(Spawn, KilledRankIsNamed) {
  const RunVerdict verdict = spawn(3, "failing", "killed");
  EXPECT_EQ(verdict.exit_code, 71);
  // MPICH cannot always tell it from those that it killed itself.
  const bool named = contains(verdict.line, "rank 1 ");
  EXPECT_TRUE(named || (is_hydra() && contains(verdict.line, "one of ranks "))) << verdict.line;
  expect_parts(verdict.line, {"died of signal 9 (Killed)"});
  EXPECT_EQ(verdict.noise, "");
}

TEST(Spawn, CauseWinsOverConsequences) {
  for (const char* ranks_per_node : {"4", "2"}) {
    const RunVerdict verdict =
        spawn(4, "failing", "throws", {{"PACELINE_TEST_RANKS_PER_NODE", ranks_per_node}});
    EXPECT_EQ(verdict.exit_code, 65);
    EXPECT_EQ(verdict.line, "rank 1: rank1.gz: a bad file");
  }
}

TEST(Spawn, StallNamesTheRankThatDidNotCome) {
  const double start = now_seconds();
  const RunVerdict verdict = spawn(2, "failing", "stalls");
  EXPECT_EQ(verdict.exit_code, 72);
  expect_parts(verdict.line, {"rank 0: barrier: rank 1 did not come within 2 s"});
  EXPECT_LT(now_seconds() - start, 50);  // the sleeper is not waited for
}

TEST(Spawn, StallBetweenNodesEndsToo) {
  const RunVerdict verdict = spawn(2, "failing", "stalls", {{"PACELINE_TEST_RANKS_PER_NODE", "1"}});
  EXPECT_EQ(verdict.exit_code, 72);
  expect_parts(verdict.line, {"rank 0: barrier: rank 1 did not come"});
}

TEST(Spawn, RanksTalkAndTheirCodePasses) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const RunVerdict verdict = spawn(2, "talk", "1");
  const std::string errors = testing::internal::GetCapturedStderr();
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_EQ(verdict.line, "");
  for (const char* line : {"rank 0 of 2\n", "rank 1 of 2\n"}) {
    expect_parts(output, {line});
    expect_parts(errors, {"progress of " + std::string(line).substr(0, 6)});
  }
  expect_no_parts(errors, {"-----"});
}

// mpirun reads the ranks' output for us, and ends well when its own cannot be written.
TEST(Spawn, OutputOntoAFullDiskIsNoSuccess) {
  const int before = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  dup2(full, STDOUT_FILENO);
  const RunVerdict verdict = spawn(2, "talk", "0");
  dup2(before, STDOUT_FILENO);
  close(before);
  close(full);
  EXPECT_EQ(verdict.exit_code, 65);
  expect_parts(verdict.line, {"standard output could not be written"});
}

TEST(Spawn, InterruptStopsTheRanks) {
  sigset_t before, set;  // blocked first, so that the thread below does not take the signal
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  std::thread interrupter([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    kill(getpid(), SIGTERM);
  });
  const RunVerdict verdict = spawn(2, "failing", "waits");
  interrupter.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(verdict.exit_code, 128 + SIGTERM);
  expect_parts(verdict.line, {"stopped by signal 15"});
}

TEST(Spawn, ProgramThatCannotStartShowsTheLaunchersWords) {
  const RunVerdict verdict = spawn_ranks({{"/no/such/program"}, 2, environment_of_process()});
  EXPECT_EQ(verdict.exit_code, 71);
  expect_parts(verdict.noise, {"/no/such/program"});
}

TEST(Spawn, NoMpirunIsRefusedWithItsPackage) {
  expect_error(ErrorKind::usage, {"openmpi-bin"}, [] {
    spawn_ranks({{LAUNCH_RANKS}, 2, {{"PATH", "/no/such/folder"}}});
  });
}

TEST(Mpi, SingletonsAreRefused) {
  const std::string program = LAUNCH_RANKS;
  expect_parts(run_shell("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 " + program +
                         " collectives 1; echo code $?"),
               {"these are 2 singletons, not 2 ranks; start them with", "code 64"});
  const std::string step = run_shell(
      "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 SLURM_NODEID=0 "
      "SLURM_NNODES=1 SLURM_STEP_TASKS_PER_NODE=2 " +
      program + " collectives 1; echo code $?");
  expect_parts(step, {"srun --mpi=pmix", "code 64"});
}

// A /dev/shm of 48 MB in a mount namespace of our own.
TEST(Mpi, RanksShareNothingWhereSharedMemoryIsFull) {
  const std::string start = "unshare -m sh -c 'mount -t tmpfs -o size=48m tmpfs /dev/shm && ";
  const std::string refused_here = why_not(start + "true'");
  if (!refused_here.empty()) {
    GTEST_SKIP() << "no right to make a mount namespace: " << refused_here;
  }
  const auto launcher = find_launcher(environment_of_process());
  ASSERT_TRUE(launcher);
  Environment environment;
  prepare_environment(*launcher, environment);
  std::string assignments;
  for (const auto& [name, value] : environment) assignments += name + "=" + value + " ";
  const auto run = [&](const std::string& bytes) {
    const auto command = launch_command(*launcher, 2, {LAUNCH_RANKS, "share", bytes});
    return run_shell(start + assignments + kStatusFolderVariable + "= " + join(command, " ") + "'");
  };
  const std::string full = run("64000000");
  expect_parts(full, {"shares 0 bytes"});
  expect_no_parts(full, {"Bus error"});
  expect_parts(run("8000000"), {"shares 8000000 bytes"});
}

}  // namespace
}  // namespace paceline
