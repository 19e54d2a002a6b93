#include "engine/core/child.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "engine/core/clock.h"
#include "tests/support/expect_error.h"
#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

ChildSetup shell(const std::string& script) {
  return {{"/bin/sh", "-c", script}, environment_of_process()};
}

struct Heard {
  Watch watch;
  std::string text;
};

Heard run_shell(const std::string& script, double grace = 15) {
  Heard heard;
  heard.watch = watch_child(
      shell(script), [&](std::string_view text) { heard.text += text; }, grace);
  return heard;
}

TEST(WatchChild, ExitCodeSignalAndWords) {
  EXPECT_EQ(run_shell("echo oops >&2; exit 7").watch.end.exit_code, 7);
  EXPECT_EQ(run_shell("echo oops >&2; exit 7").text, "oops\n");
  EXPECT_EQ(run_shell("kill -9 $$").watch.end.signal, SIGKILL);
  EXPECT_EQ(run_shell("read x || echo empty >&2").text, "empty\n");
}

// A limit of the user's is no defect of ours.
TEST(WatchChild, TooFewOpenFilesAreNamed) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const std::string line = catch_error(ErrorKind::usage, [] { run_shell("true"); });
  setrlimit(RLIMIT_NOFILE, &before);
  expect_parts(line, {"cannot", "Too many open files", "ulimit -a"});
}

TEST(WatchChild, AGrandchildThatHoldsThePipeIsNotWaitedFor) {
  const double start = now_seconds();
  EXPECT_EQ(run_shell("sleep 30 >/dev/null & echo here >&2").text, "here\n");
  EXPECT_LT(now_seconds() - start, 25);
}

TEST(WatchChild, AGrandchildThatNeverStopsPrintingIsNotWaitedFor) {
  const double start = now_seconds();
  const Heard heard = run_shell(
      "setsid sh -c 'for i in $(seq 600); do echo noise; sleep 0.05; done' >&2 & echo here >&2");
  EXPECT_TRUE(contains(heard.text, "here\n")) << heard.text;
  EXPECT_LT(now_seconds() - start, 15);
}

TEST(NamedPipe, IsReadBesideTheChild) {
  const Scratch scratch;
  const auto file = scratch / "pipe";
  std::string heard;
  {
    const NamedPipe pipe(file);
    const WatchOfMany watch =
        watch_children({shell("echo directly > '" + file.string() + "'")}, {}, {}, {},
                       {{pipe.descriptor(), [&](std::string_view text) { heard += text; }}});
    EXPECT_EQ(watch.ends.front().exit_code, 0);
  }
  EXPECT_EQ(heard, "directly\n");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(NamedPipe, WithoutAReaderChangesNothing) {
  const Scratch scratch;
  const auto pipe = scratch / "pipe", file = scratch / "file";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(file) << "kept";
  const int mine = dup(STDERR_FILENO);
  for (const auto& path : {pipe, file, scratch / "absent"}) {
    EXPECT_FALSE(NamedPipe::redirect(mine, path)) << path;
  }
  close(mine);
  EXPECT_EQ(std::filesystem::file_size(file), 4U);
}

// Signals this process once it has said "ready".
Watch stop_when_ready(const std::string& script, int number, double grace) {
  bool sent = false;
  return watch_child(
      shell(script),
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

TEST(WatchChildren, OutputAndEndOfEachAreReported) {
  std::vector<std::string> said(2);
  const WatchOfMany watch =
      watch_children({shell("echo one >&2; exit 3"), shell("sleep 0.2; echo two >&2; kill -9 $$")},
                     [&](std::size_t child, std::string_view text) { said[child] += text; });
  EXPECT_EQ(said, (std::vector<std::string>{"one\n", "two\n"}));
  ASSERT_EQ(watch.ends.size(), 2U);
  EXPECT_EQ(watch.ends[0].exit_code, 3);
  EXPECT_EQ(watch.ends[1].signal, SIGKILL);
  EXPECT_EQ(watch.stopped_by, 0);
  EXPECT_FALSE(watch.timed_out);
}

TEST(WatchChildren, SurvivorsOfAFailureAreStopped) {
  const double start = now_seconds();
  const ChildLimits limits{0.2, 0, 0.2};
  const WatchOfMany watch = watch_children(
      {shell("exit 1"), shell("trap '' TERM; while :; do sleep 0.05; done")},
      [](std::size_t, std::string_view) {}, limits);
  EXPECT_EQ(watch.ends[1].signal, SIGKILL);
  EXPECT_TRUE(watch.ends[1].asked_to_stop);
  EXPECT_FALSE(watch.ends[0].asked_to_stop);
  EXPECT_FALSE(watch.timed_out);
  EXPECT_LT(now_seconds() - start, 10);
}

TEST(WatchChildren, SeparateOutputIsReadApart) {
  ChildSetup setup = shell("echo error >&2; echo output");
  setup.separate_output = true;
  std::string errors, output;
  watch_children(
      {setup}, [&](std::size_t, std::string_view text) { errors += text; }, {},
      [&](std::size_t, std::string_view text, pid_t) { output += text; });
  EXPECT_EQ(errors, "error\n");
  EXPECT_EQ(output, "output\n");
}

// One in a session of its own, with its own child.
TEST(WatchChildren, WhatADescendantLeavesIsEnded) {
  adopt_orphans();
  std::string said;
  const WatchOfMany watch =
      watch_children({shell("setsid sh -c 'sleep 61 & echo $! >&2; sleep 60' & sleep 0.3")},
                     [&](std::size_t, std::string_view text) { said += text; });
  EXPECT_EQ(watch.ends[0].exit_code, 0);
  const double start = now_seconds();
  EXPECT_GE(end_orphans(0.1), 2);
  EXPECT_LT(now_seconds() - start, 50);
  EXPECT_NE(kill(std::stoi(said), 0), 0) << "process " << said;
  EXPECT_EQ(end_orphans(), 0);
}

TEST(WatchChildren, TheEndIsTheChildrensNotThatOfTheirPipes) {
  const WatchOfMany watch =
      watch_children({shell("setsid sh -c 'while :; do echo x >&2; sleep 0.01; done' & sleep 0.2")},
                     [](std::size_t, std::string_view) {});
  // It is read for a second, or until nothing came for a tenth of one.
  EXPECT_GT(now_seconds() - watch.ended_at, 0.09);
  end_orphans(0);
}

TEST(WatchChildren, OneThatEndsWellStopsNobody) {
  const WatchOfMany watch = watch_children({shell("exit 0"), shell("sleep 0.5; exit 0")},
                                           [](std::size_t, std::string_view) {}, {0.1, 0, 0.1});
  EXPECT_EQ(watch.ends[1].signal, 0);
  EXPECT_EQ(watch.ends[1].exit_code, 0);
}

TEST(WatchChildren, AreStoppedAtTheLimit) {
  const WatchOfMany watch = watch_children({shell("sleep 30"), shell("sleep 30")},
                                           [](std::size_t, std::string_view) {}, {5, 0.2, 5});
  EXPECT_TRUE(watch.timed_out);
  for (const ChildEnd& end : watch.ends) EXPECT_EQ(end.signal, SIGTERM);
}

TEST(WatchChild, AStoppedChildIsReportedOnceAndWaitedFor) {
  testing::internal::CaptureStderr();
  const Watch watch = watch_child(shell("(sleep 1; kill -CONT $$) & kill -STOP $$; exit 3"),
                                  [](std::string_view) {});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(watch.end.exit_code, 3);
  expect_parts(text, {"is stopped by SIGSTOP", "kill -CONT "});
  EXPECT_EQ(text.find("stopped"), text.rfind("stopped"));
}

TEST(Child, EndsInWords) {
  EXPECT_EQ(signal_name(9), "SIGKILL");
  EXPECT_EQ(signal_name(99), "signal 99");
  for (const auto& [output, line] :
       {std::pair("", ""), std::pair("a\nb\n\n", "b"), std::pair("paceline: c", "c"),
        std::pair("paceline: d\nsrun: e\n", "srun: e")}) {
    EXPECT_EQ(last_line(output), line) << output;
  }
}

}  // namespace
}  // namespace paceline
