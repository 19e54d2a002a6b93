// Causes that `paceline why` names, by minutes of runs: by tests/full.
#include <nlohmann/json.hpp>

#include "tests/integration/cli/why_program.h"

namespace paceline {
namespace {

class WhyCauses : public WhyOfProgram {};

TEST_F(WhyCauses, NamesTinyBucketsSavesAndTheSmallerBatch) {
  const Json buckets = verdict("", "--bucket 2.5");  // ten sums of 0.5 ms
  EXPECT_EQ(buckets.at("first_cause"), "sums") << buckets.dump(2);
  EXPECT_GT(points(buckets, "buckets", "tries"), 30);
  const Json saves = verdict("", "--save weights.txt --save_seconds 0.003");
  EXPECT_EQ(saves.at("first_cause"), "saves") << saves.dump(2);
  const Json batch = verdict("", "--global-batch 32");
  EXPECT_EQ(batch.at("first_cause"), "small_batch") << batch.dump(2);
  EXPECT_GT(points(batch, "kept-batch", "tries"), 20);
  EXPECT_NE(json_text(batch).find("falls from 32 alone to 16 among 2"), std::string::npos);
}

// Steps that are alike take turns in one process; where a program fails that way each is a run.
TEST_F(WhyCauses, TakesTurnsWhereTheProgramCan) {
  const auto runs_of = [&](const std::string& more) {
    const auto study = folder() / "study";
    std::filesystem::remove_all(study);
    const Json made = verdict("--out " + study.string(),
                              "--steps 5000 --save weights.txt --save_seconds 0.003 " + more);
    EXPECT_EQ(made.at("first_cause"), "saves") << made.dump(2);
    return shell("ls " + (study / "runs").string()).out + json_text(made.at("notes"));
  };
  const std::string turns = runs_of("");
  expect_parts(turns, {"program=as-it-is"});
  expect_no_parts(turns, {"program=no-saves", "cannot take turns"});
  expect_parts(runs_of("--shell 'case $PACELINE_WHY in *turns*) kill $PPID;; esac'"),
               {"program=as-it-is", "program=no-saves", "cannot take turns"});
}

TEST_F(WhyCauses, EndsAFirstRunThatIsTooLong) {
  const Ran ran = shell("paceline why --minutes 0.01 -- python3 -c 'import time; time.sleep(900)'");
  EXPECT_EQ(ran.code, 65);
  expect_parts(ran.err, {"its first run took longer than 1 min", "--minutes"});
}

// The fifth, of the first round.
TEST_F(WhyCauses, SaysThatARunFailedOnce) {
  const std::string runs = folder().string() + ".runs";  // beside it
  const Json made =
      verdict("--writes-ok", "--shell 'mkdir -p " + runs + "; test $RANK = 1 || { touch " + runs +
                                 "/$$; test $(ls " + runs + " | wc -l) -ne 5 || kill $PPID; }'");
  std::filesystem::remove_all(runs);
  EXPECT_NE(json_text(made.at("notes")).find("failed 1 time and counts where it did not"),
            std::string::npos)
      << made.dump(2);
}

}  // namespace
}  // namespace paceline
