// A run whose ranks do not all come: bounded, and the missing one is named.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/faults/victim.h"

namespace paceline::faults {
namespace {

constexpr double kPatience = 60;  // far above the deadline, for a busy machine

class Start : public testing::Test {
 protected:
  static void expect_missing(Victim& run, const End& end) {
    EXPECT_TRUE(end.in_time);
    EXPECT_TRUE(end.code == 71 || end.code == 72) << end.code << end.err;
    EXPECT_TRUE(end.last_line.starts_with("paceline: ")) << end.err;
    EXPECT_TRUE(contains(end.last_line, "rank 1")) << end.err;
    EXPECT_EQ(run.left(), std::vector<std::string>{});
  }
};

TEST_F(Start, ARankThatNeverStartsIsNamed) {
  Victim run(training("ring", Starter::us, deadline(3, 6)), {{"RANK", "0"},
                                                             {"WORLD_SIZE", "2"},
                                                             {"LOCAL_RANK", "0"},
                                                             {"LOCAL_WORLD_SIZE", "2"},
                                                             {"MASTER_ADDR", "127.0.0.1"}});
  expect_missing(run, run.wait(kPatience));
}

TEST_F(Start, DISABLED_ARankThatHangsBeforeItMeetsTheOthersIsNamed) {
  Victim run(training("ring", Starter::us, deadline(3, 6)));
  const auto target = run.rank(1);
  ASSERT_TRUE(target);
  run.send(*target, SIGSTOP);
  expect_missing(run, run.wait(kPatience));
}

}  // namespace
}  // namespace paceline::faults
