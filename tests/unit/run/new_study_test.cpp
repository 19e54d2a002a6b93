#include "run/new_study.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/core/error.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(NewStudyTest, WithoutADialogItTakesWhatItOffers) {
  const NewSpec spec = make_new_spec({.name = "s", .device = "cpu"});
  EXPECT_EQ(spec.name, "s");
  EXPECT_EQ(spec.workload, "mnist-cnn");
  EXPECT_EQ(spec.command, "");
  EXPECT_EQ(spec.backends.size(), 1U);
  EXPECT_EQ(spec.repeats, 5);
  ASSERT_FALSE(spec.gpus.empty());
  EXPECT_EQ(spec.gpus.front(), 1);
  EXPECT_LE(spec.gpus.back(), 8);
}

TEST(NewStudyTest, WhatIsGivenIsNotAskedFor) {
  std::vector<std::string> asked;
  const Dialog dialog{[&](const std::string& question, const std::string& offer) {
                        asked.push_back(question);
                        return offer;
                      },
                      {}};
  const NewSpec spec = make_new_spec({.name = "s",
                                      .program = "mnist-mlp",
                                      .device = "cpu",
                                      .backends = {"ring", "mpi"},
                                      .gpus = {1, 3},
                                      .repeats = 7},
                                     dialog);
  EXPECT_EQ(asked, std::vector<std::string>());
  EXPECT_EQ(spec.backends, (std::vector<std::string>{"ring", "mpi"}));
  EXPECT_EQ(spec.gpus, (std::vector<int>{1, 3}));
  EXPECT_EQ(spec.repeats, 7);
}

TEST(NewStudyTest, AnInputThatEndsIsNotAskedAgain) {
  int asked = 0;
  const Dialog dialog{[&](const std::string&, const std::string&) -> std::string {
                        ++asked;
                        throw Error(ErrorKind::usage, "the input ended", "", "");
                      },
                      [](const std::string&) {}};
  expect_error(ErrorKind::usage, {"the input ended"},
               [&] { make_new_spec({.name = "s"}, dialog); });
  EXPECT_EQ(asked, 1);
}

TEST(NewStudyTest, AsksAgainAfterAWrongAnswer) {
  std::map<std::string, std::vector<std::string>> answers = {
      {"A workload, or your command line", {"mnist-cn", "python train.py"}},
      {"Device (cpu, cuda)", {"cbu", "cpu"}},
      {"Its throughput, as a regular expression with one group", {"rate: {number}"}},
      {"Its unit", {"tokens/s"}},
      {"Work of a run: the same at every size (fixed) or on each replica (grows)",
       {"shrinks", "grows"}},
      {"Numbers of replicas (GPUs, or groups of cores)", {"1,two", "0", "1, 2"}},
      {"Repeats", {"1,2", "3"}}};
  std::vector<std::string> errors;
  const Dialog dialog{[&](const std::string& question, const std::string&) {
                        std::vector<std::string>& left = answers.at(question);
                        const std::string answer = left.front();
                        left.erase(left.begin());
                        return answer;
                      },
                      [&](const std::string& error) { errors.push_back(error); }};
  const NewSpec spec = make_new_spec({.name = "s"}, dialog);
  EXPECT_EQ(spec.command, "python train.py");
  EXPECT_EQ(spec.workload, "");
  EXPECT_EQ(spec.throughput, "rate: {number}");
  expect_parts(to_text(spec), {R"({"line": "rate: {number}", "pick": "last", "unit": "tokens/s"})",
                               R"("work": "grows"})"});
  EXPECT_EQ(spec.gpus, (std::vector<int>{1, 2}));
  EXPECT_EQ(spec.repeats, 3);
  const std::vector<std::string> parts = {"\"mnist-cn\" is neither a workload nor a program",
                                          "\"cbu\"",
                                          "\"shrinks\"",
                                          "\"1,two\" is not a list of numbers",
                                          "\"0\" is not a list of numbers",
                                          "\"1,2\" is several numbers"};
  ASSERT_EQ(errors.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    expect_parts(errors[i], {parts[i]});
  }
}

TEST(NewStudyTest, AUnitOfOnesOwn) {
  expect_parts(to_text(make_new_spec({.name = "s",
                                      .program = "gmx mdrun",
                                      .throughput = "Performance: +{number}",
                                      .unit = "ns/day",
                                      .better = "more",
                                      .device = "cpu"})),
               {R"("unit": "ns/day", "better": "more"})", R"("fixed": {"device": "cpu"})"});
}

TEST(NewStudyTest, OptionsOfAnotherProgramAreRefused) {
  const std::string own = "is for a program of your own";
  for (const auto& [given, parts] :
       {std::pair(NewStudy{.program = "mnist-mlp", .throughput = "x"},
                  std::vector<std::string>{"--throughput", own}),
        {NewStudy{.program = "mnist-mlp", .processes = "node"}, {"--processes", own}},
        {NewStudy{.program = "mnist-mlp", .work = "grows"}, {"--work", own}},
        {NewStudy{.program = "a b", .unit = "ns/day"},
         {"--unit is for the expression of a throughput"}},
        {NewStudy{.program = "a b", .backends = {"mpi"}}, {"--backend is for our workloads"}},
        {NewStudy{.program = "mnist-ml"}, {"--program", "did you mean \"mnist-mlp\"?"}},
        {NewStudy{.device = "cuda2"}, {"--device", "\"cuda\"?"}},
        {NewStudy{.device = "cpu", .backends = {"rng"}}, {"--backend", "\"ring\"?"}}}) {
    expect_error(ErrorKind::usage, parts, [&, &given = given] { make_new_spec(given); });
  }
}

}  // namespace
}  // namespace paceline
