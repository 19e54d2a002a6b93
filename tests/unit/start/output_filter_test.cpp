#include "engine/start/output_filter.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

const std::string kRule(74, '-');
const std::string kHelp = kRule + "\nmpirun noticed that process rank 1 with PID 0 on node n\n" +
                          "exited on signal 9 (Killed).\n" + kRule + "\n";

struct Sorted {
  std::string passed, noise;
};

Sorted sort(const std::string& text, std::size_t piece) {
  Sorted sorted;
  NoiseFilter filter([&](std::string_view part) { sorted.passed += part; });
  for (std::size_t at = 0; at < text.size(); at += piece) filter.feed(text.substr(at, piece));
  filter.finish();
  sorted.noise = filter.noise();
  return sorted;
}

TEST(NoiseFilter, HelpTextsAreTakenOutWhereverTheTextIsCut) {
  const std::string tagged = "[host-1.cluster:4242] 1 more process has sent help message\n";
  for (const std::size_t piece : {1U, 3U, 17U, 4096U}) {
    const Sorted sorted = sort("step 1\n" + kHelp + "step 2\n" + tagged + "last", piece);
    EXPECT_EQ(sorted.passed, "step 1\nstep 2\nlast");
    EXPECT_EQ(sorted.noise, kHelp + tagged);
  }
}

TEST(NoiseFilter, TagsOfTransportsAndOfMpichAreTakenOut) {
  const std::string transports =
      "[host-1][[64131,1],0][btl_tcp_proc.c:266:mca_btl_tcp_proc_create_interface_graph] Unable to "
      "find reachable pairing between local and remote interfaces\n";
  const std::string mpich =
      "[proxy:0:0@host-1.cluster] HYDU_create_process (utils/launch/launch.c:73): execvp error\n"
      "[mpiexec@host-1] control_cb: assert failed\n";
  for (const std::string& words : {transports, mpich}) {
    for (const std::size_t piece : {1U, 5U, 4096U}) {
      EXPECT_EQ(sort("a\n" + words + "b\n", piece).passed, "a\nb\n");
      EXPECT_EQ(sort("a\n" + words + "b\n", piece).noise, words);
    }
  }
}

TEST(NoiseFilter, RanksMayUseTheSameCharacters) {
  const std::string text =
      "- a list\n----- short rule\n[####    ] 50 %\r[1/2] done\n== ok\n[a]\n[a@b] c\n[proxy] d\n"
      "[a][b]\n[a][[1,2] row\n[a][[1,2],[3,4]]\n";
  for (const std::size_t piece : {1U, 5U, 4096U}) {
    EXPECT_EQ(sort(text, piece).passed, text);
    EXPECT_EQ(sort(text, piece).noise, "");
  }
}

TEST(NoiseFilter, UnfinishedLinesPassAtOnce) {
  std::string passed;
  NoiseFilter filter([&](std::string_view part) { passed += part; });
  filter.feed("epoch 1/2  40 %");
  EXPECT_EQ(passed, "epoch 1/2  40 %");
  filter.feed("\r[##");
  EXPECT_EQ(passed, "epoch 1/2  40 %\r[##");
}

TEST(NoiseFilter, WhatIsUndecidedAtTheEndIsTheRanks) {
  EXPECT_EQ(sort("---", 1).passed, "---");
  EXPECT_EQ(sort(kRule + "\ncut sho", 1).noise, kRule + "\ncut sho");
}

TEST(NoiseFilter, MpichsBlockEndsTheRanksTalk) {
  const std::string rule(83, '=');
  const std::string end = rule + "\n=   PID 42 RUNNING AT n\n=   EXIT CODE: 9\n" + rule +
                          "\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n";
  const Sorted sorted = sort("step 1\n" + end, 7);
  EXPECT_EQ(sorted.passed, "step 1\n");
  EXPECT_EQ(sorted.noise, end);
}

}  // namespace
}  // namespace paceline
