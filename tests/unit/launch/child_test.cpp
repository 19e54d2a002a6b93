#include "engine/core/child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "engine/core/clock.h"
#include "engine/launch/launcher.h"
#include "engine/launch/program.h"
#include "engine/launch/status.h"
#include "tests/unit/launch/expect_error.h"

namespace paceline {
namespace {

struct Heard {
  Watch watch;
  std::string text;
};

Heard run_shell(const std::string& script, double grace = 15) {
  Heard heard;
  heard.watch = watch_child(
      {{"/bin/sh", "-c", script}, environment_of_process()},
      [&](std::string_view text) { heard.text += text; }, grace);
  return heard;
}

TEST(WatchChild, ExitCodeSignalAndWords) {
  EXPECT_EQ(run_shell("echo oops >&2; exit 7").watch.end.exit_code, 7);
  EXPECT_EQ(run_shell("echo oops >&2; exit 7").text, "oops\n");
  EXPECT_EQ(run_shell("kill -9 $$").watch.end.signal, SIGKILL);
  EXPECT_EQ(run_shell("read x || echo empty >&2").text, "empty\n");
}

TEST(WatchChild, AGrandchildThatHoldsThePipeIsNotWaitedFor) {
  const double start = now_seconds();
  EXPECT_EQ(run_shell("sleep 5 >/dev/null & echo here >&2").text, "here\n");
  EXPECT_LT(now_seconds() - start, 4);
}

// Signals this process once it has said "ready".
Watch stop_when_ready(const std::string& script, int number, double grace) {
  bool sent = false;
  return watch_child(
      {{"/bin/sh", "-c", script}, environment_of_process()},
      [&](std::string_view) {
        if (!sent) kill(getpid(), number);
        sent = true;
      },
      grace);
}

TEST(WatchChild, PassesSignalsOn) {
  const Watch watch = stop_when_ready(
      "trap 'exit 3' TERM; echo ready >&2; while :; do sleep 0.05; done", SIGTERM, 15);
  EXPECT_EQ(watch.stopped_by, SIGTERM);
  EXPECT_EQ(watch.end.exit_code, 3);
  const Watch user = stop_when_ready(
      "trap 'exit 4' USR1; echo ready >&2; while :; do sleep 0.05; done", SIGUSR1, 15);
  EXPECT_EQ(user.stopped_by, 0);
  EXPECT_EQ(user.end.exit_code, 4);
}

TEST(WatchChild, KillsWhatWillNotStop) {
  const Watch watch =
      stop_when_ready("trap '' TERM; echo ready >&2; while :; do sleep 0.05; done", SIGTERM, 0.3);
  EXPECT_EQ(watch.end.signal, SIGKILL);
}

TEST(Program, FoundInPathOnly) {
  EXPECT_TRUE(find_program("sh", environment_of_process()));
  EXPECT_FALSE(find_program("no-such-program", environment_of_process()));
  EXPECT_FALSE(find_program("sh", {}));
  EXPECT_EQ(this_program().filename(), "test_unit_launch_child");
}

TEST(Program, OutputOfOneThatWillNotEndIsEmpty) {
  EXPECT_EQ(output_of({"/bin/sh", "-c", "echo a; echo b >&2"}), "a\nb\n");
  EXPECT_EQ(output_of({"/no/such/program"}), "");
  const double start = now_seconds();
  EXPECT_EQ(output_of({"/bin/sh", "-c", "sleep 30"}, 0.2), "");
  EXPECT_LT(now_seconds() - start, 10);
}

TEST(Launcher, MakeAndCommand) {
  EXPECT_EQ(make_of("mpirun (Open MPI) 4.1.4\n"), LauncherMake::open_mpi);
  EXPECT_EQ(make_of("mpirun.openmpi (OpenRTE) 4.1.4"), LauncherMake::open_mpi);
  EXPECT_EQ(make_of("HYDRA build details:\n Version: 4.0.2"), LauncherMake::hydra);
  EXPECT_EQ(make_of("Intel(R) MPI Library for Linux* OS"), LauncherMake::hydra);
  const auto command = launch_command({"/bin/mpirun", LauncherMake::open_mpi, ""}, 4, {"/x", "y"});
  const std::vector<std::string> expected = {"/bin/mpirun",
                                             "--bind-to",
                                             "none",
                                             "--map-by",
                                             "slot:OVERSUBSCRIBE",
                                             "-x",
                                             kRunFolderVariable,
                                             "-n",
                                             "4",
                                             "/x",
                                             "y"};
  EXPECT_EQ(command, expected);
  EXPECT_ERROR(launch_command({"/bin/mpirun", LauncherMake::unknown, "hm 1.0"}, 4, {"/x"}), usage,
               "\"hm 1.0\" is neither Open MPI nor MPICH");
}

}  // namespace
}  // namespace paceline
