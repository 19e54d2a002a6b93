// paceline new: a first spec, which passes a dry run.
#include <fmt/format.h>

#include "engine/core/file.h"
#include "engine/core/text.h"
#include "sweeps/spec.h"
#include "tests/integration/cli/paceline.h"
#include "tests/support/has_engine.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class CliNew : public Cli {
 protected:
  Spec spec(const std::string& name) const { return read_spec(folder() / name); }
  void expect_plans(const std::string& file) const {
    expect_parts(succeed("sweep " + file + " --dry-run --results r").out, {" runs to do"});
  }
  // Without it, expressions are checked when the study runs.
  // Types the lines on a terminal.
  Ran typed(const std::string& lines, const std::string& arguments) const {
    return shell("printf '" + lines + "' | TERM=dumb script -qec \"'" PACELINE_BINARY "' " +
                 arguments + "\" /dev/null");
  }
};

TEST_F(CliNew, TakesWhatItOffers) {
  expect_parts(succeed("new first --yes").out, {"paceline sweep first.json --dry-run"});
  EXPECT_EQ(spec("first.json").workload, "mnist-cnn");
  EXPECT_EQ(spec("first.json").repeats, 5);
  expect_plans("first.json");
}

TEST_F(CliNew, AProgramOfTheUsersOwn) {
  succeed(
      "new mine --yes --program 'torchrun --nproc-per-node {gpus} train.py' "
      "--throughput 'rate: ([0-9.]+)' --gpus 1,2 --repeats 3");
  const Spec words = spec("mine.json");
  EXPECT_EQ(words.programs.front().command.size(), 4U);
  EXPECT_EQ(words.programs.front().results.front().what, "rate: ([0-9.]+)");
  EXPECT_EQ(words.repeats, 3);
  expect_plans("mine.json");
  expect_parts(succeed("new blind --yes --program 'python3 train.py' --gpus 1,2").err,
               {"note: program blind is not given the number of replicas", "{gpus}"});
  expect_parts(succeed("sweep blind.json --dry-run --results r").out, {"put {gpus} into the"});
  expect_no_parts(succeed("sweep mine.json --dry-run --results r").out, {"number of replicas"});
  succeed("new piped --yes --program \"cat 'a b' | wc -l\"");
  EXPECT_TRUE(spec("piped.json").programs.front().shell);
  EXPECT_TRUE(spec("piped.json").programs.front().results.empty());
  expect_plans("piped.json");
}

TEST_F(CliNew, AsksFiveQuestions) {
  if (shell("command -v script").code != 0) GTEST_SKIP() << "no program script (util-linux)";
  expect_success(typed("mnist-mlp\\n\\nmpi, gloo\\n1,2\\n4\\n", "new asked"));
  const Spec asked = spec("asked.json");
  EXPECT_EQ(asked.workload, "mnist-mlp");
  EXPECT_EQ(asked.axes.size(), 2U);
  EXPECT_EQ(asked.axes.back().values.size(), 2U);
  EXPECT_EQ(asked.repeats, 4);
  expect_plans("asked.json");
}

TEST_F(CliNew, AsksAgainWhereAnAnswerCannotBeUsed) {
  if (shell("command -v script").code != 0) GTEST_SKIP() << "no program script (util-linux)";
  const Ran ran = expect_success(typed(
      "mnist-cnnn\\nmnist-cnn\\ncpus\\ncpu\\nmpii\\nmpi\\n1 2\\n1,2\\n3,4\\n3\\n", "new again"));
  expect_parts(
      ran.out,
      {"\"mnist-cnnn\" is neither a workload nor a program here; did you mean \"mnist-cnn\"?",
       "the answer: unknown backend \"mpii\"; did you mean \"mpi\"?",
       "\"1 2\" is not a list of numbers above 0; write 1,2,4",
       "\"3,4\" is several numbers; write one"});
  EXPECT_EQ(spec("again.json").workload, "mnist-cnn");
  EXPECT_EQ(spec("again.json").repeats, 3);
  expect_refused("new b --yes --program mnist-cnnn", 64, {"did you mean \"mnist-cnn\"?"});
  if (!has_engine()) return;
  expect_parts(typed("./train\\n\\nrate (.+\\n", "new bad").out,
               {"not a regular expression", "the input ended before the last question"});
  EXPECT_FALSE(fs::exists(folder() / "bad.json"));
}

// By the reader of a run.
TEST_F(CliNew, ShowsWhatALogIsReadAs) {
  std::string log = "tokens per iteration will be: 768\n";
  for (int i = 0; i < 14; ++i) {
    log += fmt::format("iter {}: loss 4.5, time {}ms, mfu 1%\n", i, i == 0 ? 8000 : 22);
  }
  replace_file(folder() / "log", log);
  expect_parts(succeed("new --try log").out,
               {"--throughput nanogpt\n", "step_seconds       14 numbers, 0.022 to 8\n",
                "rate               34909 tokens/s: ", "4 of the 14 steps"});
  expect_parts(succeed("new --try log --throughput 'mfu {number}%'").out, {"throughput", " 1\n"});
  expect_refused("new --try log --throughput keras", 65, {"step_seconds was not printed"});
  expect_refused("new --try log --throughput 'rate {number}'", 65, {"was not printed"});
  replace_file(folder() / "other", "Step 1 | 12 it/s\n");
  expect_refused("new --try other", 65, {"no preset reads it (nanogpt, ", "--throughput"});
  expect_refused("new --try nothing", 65, {"nothing"});
  succeed("new preset --yes --program 'python3 train.py' --throughput nanogpt");
  EXPECT_EQ(spec("preset.json").programs.front().results.size(), 3U);
}

TEST_F(CliNew, RefusesInOneLine) {
  expect_refused("new a", 64, {"no terminal to ask on", "--yes"});
  succeed("new a --yes");
  const std::string before = read_text(folder() / "a.json");
  expect_refused("new a --yes", 64, {"a.json: the file exists already"});
  EXPECT_EQ(read_text(folder() / "a.json"), before);
  expect_refused("new b --yes --program mnist-cnn --backend nope", 64,
                 {"--backend: unknown backend \"nope\""});
  expect_refused("new b --yes --program mnist-cnn --backend mpi,mpii", 64,
                 {"--backend: unknown backend \"mpii\"; did you mean \"mpi\"?"});
  expect_refused("new b --yes --program mnist-cnn --device gpus", 64, {"gpus"});
  if (has_engine()) {
    expect_refused("new b --yes --program x --throughput 'rate'", 64,
                   {"--throughput", "has 0 groups"});
  }
  expect_refused("new b --yes --program 'x {gpu}'", 65, {"{gpu}", "did you mean"});
  expect_refused("new b --yes --program mnist-cnn --throughput 'r (.)'", 64,
                 {"--throughput is for"});
  expect_refused("new b --yes --program mnist-cnn --processes node", 64, {"--processes is for"});
  expect_refused("new b --yes --program x --backend mpi", 64, {"--backend is for our workloads"});
  expect_refused("new '' --yes", 64, {"name"});
  EXPECT_FALSE(fs::exists(folder() / "b.json"));
}

TEST(NewSpec, WordsNeedAShellOnlyWhereItWouldChangeThem) {
  EXPECT_EQ(plain_words("python3  train.py --gpus={gpus}"),
            (std::vector<std::string>{"python3", "train.py", "--gpus={gpus}"}));
  for (const char* line : {"a 'b c'", "a $X", "X=1 a", "a | b", "a > b", "a *"}) {
    EXPECT_TRUE(plain_words(line).empty()) << line;
  }
  EXPECT_EQ(doubling(6), (std::vector<int>{1, 2, 4, 6}));
  EXPECT_EQ(doubling(1), std::vector<int>{1});
}

}  // namespace
}  // namespace paceline
