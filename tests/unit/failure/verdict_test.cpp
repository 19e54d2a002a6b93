#include "engine/failure/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

RankStatus done(int rank, int code = 0) {
  return {rank, "n1", 100 + rank, RankState::done, code, "", 50};
}
RankStatus failed(int rank, int code, const std::string& message, double time) {
  return {rank, "n1", 100 + rank, RankState::failed, code, message, time};
}
RankStatus running(int rank) {
  return {rank, "n1", 100 + rank, RankState::running, 0, "", 1};
}

Watch ended(int code, int stopped_by = 0) {
  return {{code, 0}, stopped_by};
}

const std::string kKilled =
    "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed).\n";

std::string mpich_line(int pid) {
  return "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID " +
         std::to_string(pid) +
         " RUNNING AT n1\n=   EXIT CODE: 11\n"
         "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n";
}

void expect(const RunVerdict& verdict, int code, const std::string& line) {
  EXPECT_EQ(verdict.exit_code, code);
  EXPECT_EQ(verdict.line, line);
}

TEST(Judge, AllWell) {
  expect(judge(2, {done(0), done(1)}, ended(0), {}), 0, "");
  expect(judge(2, {done(0, 1), done(1)}, ended(1), {}), 1, "");
}

TEST(Judge, CodeOfARankStandsWhereTheLauncherStoppedTheOthers) {
  expect(judge(2, {done(0, 1), running(1)}, ended(1), {}), 1, "");
  expect(judge(2, {done(0, 1), failed(1, 71, "rank 1: lost", 9)}, ended(1), {}), 1, "");
}

TEST(Judge, OpenMpi5BreaksTheLineThatNamesTheDeath) {
  const std::string words =
      "prterun noticed that process rank 1 with PID 2977 on node n1 exited on\nsignal 9 "
      "(Killed).\n";
  const RunVerdict verdict = judge(2, {running(0), running(1)}, ended(137), {words, ""});
  EXPECT_EQ(verdict.exit_code, 71);
  expect_parts(verdict.line, {"rank 1 on n1"});
}

TEST(Judge, OwnErrorWinsOverItsConsequences) {
  const auto lost = failed(0, 71, "rank 0: rank 2 gave up", 9.0);
  const auto stall = failed(1, 72, "rank 1: rank 2 did not come", 9.5);
  const auto cause = failed(2, 65, "bad file", 10.0);
  const auto later = failed(3, 70, "broken", 11.0);
  expect(judge(4, {lost, stall, cause, later}, ended(137), {kKilled, ""}), 65, "rank 2: bad file");
}

TEST(Judge, WhatAllReportHasNoRank) {
  expect(judge(2, {failed(0, 64, "too many", 2), failed(1, 64, "too many", 1)}, ended(64), {}), 64,
         "too many");
}

TEST(Judge, KilledRankIsNamed) {
  expect(judge(2, {failed(0, 71, "rank 0: lost", 9), running(1)}, ended(137), {kKilled, ""}), 71,
         "rank 1 on n1 died of signal 9 (Killed); see the kernel's log: most often memory ran out");
  expect(judge(2, {running(0), running(1)}, ended(139), {"", mpich_line(101)}), 71,
         "rank 1 on n1 died of signal 11 (Segmentation fault); please report it with the command");
  // Hydra names the first that ended badly, its own victims among them.
  expect(judge(2, {running(0), running(1)}, ended(9), {"", mpich_line(100)}), 71,
         "one of ranks 0, 1 died of signal 11 (Segmentation fault); please report it with the "
         "command");
  expect(judge(2, {running(0), failed(1, 71, "rank 1: lost", 9)}, ended(9), {"", mpich_line(100)}),
         71,
         "rank 0 on n1 died of signal 11 (Segmentation fault); please report it with the command");
}

// Nobody needs to report what a batch system does.
TEST(Judge, SignalsThatOthersSendAreNoDefects) {
  std::string words = kKilled;
  words.replace(words.find("signal 9 (Killed)"), 17, "signal 15 (Terminated)");
  expect(judge(2, {running(0), running(1)}, ended(143), {words, ""}), 71,
         "rank 1 on n1 died of signal 15 (Terminated); see who sent it: most often a batch system "
         "or an administrator");
}

TEST(Judge, AHungRankThatTheLauncherKilledIsAStall) {
  const auto gave_up = failed(0, 72, "rank 0: rank 1 did not come", 9);
  expect(judge(2, {gave_up, running(1)}, ended(9), {kKilled, ""}), 72,
         "rank 0: rank 1 did not come");
  // Nobody but itself ends by a signal that no launcher sends.
  EXPECT_EQ(judge(2, {gave_up, running(1)}, ended(11), {"", mpich_line(101)}).exit_code, 71);
}

TEST(Judge, RequestedStopIsNoFailureOfARank) {
  expect(judge(2, {running(0), running(1)}, ended(1, SIGINT), {kKilled, ""}), 130,
         "stopped by signal 2 (Interrupt)");
  expect(judge(2, {done(0), done(1)}, ended(0, SIGINT), {}), 0, "");
}

TEST(Judge, StallThenSilenceThenLostPeer) {
  const auto lost = failed(0, 71, "rank 0: lost", 9);
  expect(judge(2, {failed(0, 72, "rank 0: rank 1 did not come", 9), running(1)}, ended(1), {}), 72,
         "rank 0: rank 1 did not come");
  const RunVerdict silent = judge(2, {lost}, ended(1), {"words", ""});
  expect(silent, 71,
         "rank 1 ended without reporting an error; see the launcher's words and the kernel's log");
  EXPECT_EQ(silent.noise, "words");
  expect(judge(2, {lost, done(1)}, ended(1), {}), 71, "rank 0: lost");
}

TEST(Judge, LauncherThatStartedNobodySpeaksForItself) {
  const RunVerdict verdict = judge(2, {}, ended(213), {"no slots", ""});
  EXPECT_EQ(verdict.exit_code, 71) << "it is no defect of ours";
  expect_parts(verdict.line, {"code 213 before any rank began"});
  EXPECT_EQ(verdict.noise, "no slots");
}

TEST(Judge, AnEndBehindTheWorkIsNoSuccess) {
  const RunVerdict full = judge(2, {done(0), done(1)}, ended(65), {"words", ""});
  expect(full, 65,
         "mpirun: the launcher ended with code 65 after the ranks' work was done; see its words "
         "above, or try it with paceline doctor");
  EXPECT_EQ(full.noise, "words");
  WatchOfMany watch;
  watch.ends = {{65, 0}, {0, 0}};
  expect(judge({done(0), done(1)}, watch, "p"), 65,
         "rank 0 ended with code 65 after its work was done; see its words above");
}

TEST(JudgeChildren, EndsOfOurOwnChildrenAreKnown) {
  WatchOfMany watch;
  watch.ends = {{71, 0}, {0, SIGKILL}, {0, SIGTERM}};
  const auto lost = failed(0, 71, "rank 0: the connection to rank 1 broke", 9);
  expect(judge({lost, running(1), running(2)}, watch, "p"), 71,
         "rank 1 on n1 died of signal 9 (Killed); see the kernel's log: most often memory ran out");
  watch.ends = {{0, 0}, {0, 0}};
  expect(judge({done(0), done(1)}, watch, "p"), 0, "");
  watch.ends = {{65, 0}, {71, 0}};
  expect(judge({failed(0, 65, "bad file", 1), failed(1, 71, "rank 1: lost", 2)}, watch, "p"), 65,
         "rank 0: bad file");
  watch.ends = {{0, SIGTERM}, {0, SIGTERM}};
  watch.stopped_by = SIGTERM;
  expect(judge({running(0), running(1)}, watch, "p"), 143, "stopped by signal 15 (Terminated)");
}

TEST(JudgeChildren, WhatWeStoppedIsNoCause) {
  WatchOfMany watch;
  watch.ends = {{72, 0}, {0, SIGKILL, true}};
  expect(judge({failed(0, 72, "rank 0: rank 1 did not come", 9), running(1)}, watch, "p"), 72,
         "rank 0: rank 1 did not come");
  watch.ends = {{71, 0}, {0, SIGTERM, true}};
  expect(judge({failed(0, 71, "rank 0: lost", 9), running(1)}, watch, "p"), 71, "rank 0: lost");
}

TEST(JudgeChildren, ACodeWithoutAWordPasses) {
  WatchOfMany watch;
  watch.ends = {{64, 0}, {64, 0}};
  expect(judge({}, watch, "p"), 64,
         "rank 0 ended with code 64 and did not write down why; see its words above");
  watch.ends = {{0, 0}, {3, 0}};
  expect(judge({done(0), running(1)}, watch, "p"), 70,
         "rank 1 ended with code 3 and did not write down why; see its words above");
}

TEST(JudgeChildren, AProgramThatCannotBeExecutedIsNamed) {
  WatchOfMany watch;
  watch.ends = {{127, 0}, {127, 0}};
  const RunVerdict verdict = judge({}, watch, "/no/such/program");
  EXPECT_EQ(verdict.exit_code, 70);
  expect_parts(verdict.line, {"/no/such/program"});
}

}  // namespace
}  // namespace paceline
